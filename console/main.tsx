import "./frame/language.ts";
import { render } from "preact";
import { Frame, type Screen } from "./frame/frame.tsx";
import { startLive } from "./frame/live.ts";
import { findSession } from "./frame/session.ts";

const screens: readonly Screen[] = [
  {
    name: "events",
    label: "Events",
    letter: "e",
    load: async () => (await import("./events/screen.tsx")).EventsScreen,
  },
  {
    name: "occurrences",
    below: "events",
    load: async () => (await import("./occurrence/screen.tsx")).OccurrenceScreen,
  },
  {
    name: "entities",
    label: "Entities",
    letter: "n",
    load: async () => (await import("./entities/screen.tsx")).EntitiesScreen,
  },
  {
    name: "metrics",
    label: "Metrics",
    letter: "m",
    load: async () => (await import("./metrics/screen.tsx")).MetricsScreen,
  },
  {
    name: "deliveries",
    label: "Deliveries",
    letter: "d",
    load: async () => (await import("./deliveries/screen.tsx")).DeliveriesScreen,
  },
  {
    name: "rules",
    label: "Rules",
    letter: "r",
    load: async () => (await import("./rules/screen.tsx")).RulesScreen,
    sections: async () => (await import("./rules/screen.tsx")).sections,
  },
  {
    name: "windows",
    label: "Windows",
    letter: "w",
    load: async () => (await import("./windows/screen.tsx")).WindowsScreen,
  },
  {
    name: "settings",
    label: "Settings",
    letter: "s",
    load: async () => (await import("./settings/screen.tsx")).SettingsScreen,
    sections: async () => (await import("./settings/screen.tsx")).sections,
  },
];

const loadFinder = async () => (await import("./find/finder.tsx")).Finder;

// The other screens are fetched when there is nothing else to do, so that each opens at once.
setTimeout(() => {
  for (const { load } of screens) void load().catch(() => undefined);
}, 3000);

void findSession();
startLive();
render(<Frame screens={screens} loadFinder={loadFinder} />, document.body);
