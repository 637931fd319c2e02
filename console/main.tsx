import "./frame/language.ts";
import { render } from "preact";
import { Frame, type Screen } from "./frame/frame.tsx";
import { startLive } from "./frame/live.ts";
import { findSession } from "./frame/session.ts";

const screens: readonly Screen[] = [
  { name: "events", label: "Events", load: async () => (await import("./events/screen.tsx")).EventsScreen },
  {
    name: "occurrences",
    below: "events",
    load: async () => (await import("./occurrence/screen.tsx")).OccurrenceScreen,
  },
  { name: "entities", label: "Entities", load: async () => (await import("./entities/screen.tsx")).EntitiesScreen },
  { name: "metrics", label: "Metrics", load: async () => (await import("./metrics/screen.tsx")).MetricsScreen },
  {
    name: "deliveries",
    label: "Deliveries",
    load: async () => (await import("./deliveries/screen.tsx")).DeliveriesScreen,
  },
  { name: "rules", label: "Rules", load: async () => (await import("./rules/screen.tsx")).RulesScreen },
  { name: "windows", label: "Windows", load: async () => (await import("./windows/screen.tsx")).WindowsScreen },
  { name: "settings", label: "Settings", load: async () => (await import("./settings/screen.tsx")).SettingsScreen },
];

// The other screens are fetched when there is nothing else to do, so that each opens at once.
setTimeout(() => {
  for (const { load } of screens) void load().catch(() => undefined);
}, 3000);

void findSession();
startLive();
render(<Frame screens={screens} />, document.body);
