import type { Screen } from "./frame/screen.ts";

/** The screens, in the order of the navigation; each loads its code when it is first opened. */
export const screens: readonly Screen[] = [
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
    label: "Maintenance",
    letter: "w",
    load: async () => (await import("./windows/screen.tsx")).WindowsScreen,
  },
  {
    name: "silences",
    label: "Silences",
    letter: "i",
    load: async () => (await import("./silences/screen.tsx")).SilencesScreen,
  },
  {
    name: "settings",
    label: "Settings",
    letter: "s",
    load: async () => (await import("./settings/screen.tsx")).SettingsScreen,
    sections: async () => (await import("./settings/screen.tsx")).sections,
  },
];

/** Loads what finds anything by its name. */
export const loadFinder = async () => (await import("./find/finder.tsx")).Finder;
