/** Folders of `src/` that know no domain, in import order. */
export const mechanisms: readonly string[] = [
  "db",
  "embedded",
  "backup",
  "auth",
  "clause",
  "jobs",
  "wire",
  "transcoding",
  "rpc",
  "protocols",
  "http",
];

/** Folders of `src/` that are a proto package of the same name, in import order. */
export const domains: readonly string[] = [
  "tenants",
  "users",
  "credentials",
  "dictionary",
  "entities",
  "properties",
  "metrics",
  "events",
  "notifications",
  "maintenance",
  "receiver",
];

/** Folders of `src/` that speak other tools' protocols: a folder a tool. They write through the receiver and hold no SQL. */
export const adapters: readonly string[] = ["integrations"];

/** Folders of `src/` that serve pages and know no domain: a page uses the API, as every client does. */
export const pages: readonly string[] = ["console"];

/** Folders of `src/` at the ends of the order: settings, which know nothing, and what starts servers, which knows everything. */
export const edges: readonly string[] = ["config", "processes", "cli"];

/** Folders of `src/` that look at all mechanisms and domains, and are no domain themselves. */
export const observers: readonly string[] = ["telemetry"];

/**
 * What may import what: a file may import only from its own folder and from names to the left of it.
 * A name is a folder of `src/`, a file of `src/` without its ending, or `gen` at the root.
 * `.dependency-cruiser.js` makes its rules of this array, `test/layout.test.ts` holds the tree to it.
 */
export const importOrder: readonly string[] = [
  "gen",
  "version",
  "error-reasons",
  "errors",
  "config",
  "failpoint",
  "log",
  "fair-queue",
  "limiter",
  "histogram",
  "event-loop",
  "every",
  "proto-option",
  ...mechanisms,
  ...domains,
  ...adapters,
  "retention",
  ...pages,
  ...observers,
  "prepared-database",
  "server",
  "processes",
  "cli",
  "main",
];

/** Names that may import less than the order allows, and what is left to them. */
export const strictImports: Readonly<Record<string, readonly string[]>> = {
  gen: [],
  wire: ["gen", "error-reasons", "event-loop", "proto-option"],
  transcoding: ["gen", "event-loop", "proto-option", "wire"],
  clause: ["gen", "errors", "db", "event-loop"],
  console: ["gen", "http", "log"],
  // Without the database: what they read they are handed.
  integrations: [
    "gen",
    "errors",
    "config",
    "event-loop",
    "proto-option",
    "auth",
    "clause",
    "wire",
    "transcoding",
    "rpc",
    "protocols",
    "http",
    "entities",
    "metrics",
    "events",
    "notifications",
    "receiver",
  ],
};

/**
 * The layers of `src/notifications`, in import order: a file may import only from its own layer and from those before it. What calls
 * against the order is a function that `start.ts` or `deciding/engine.ts` hands down.
 */
export const notificationLayers: readonly string[] = [
  "subject",
  "silences",
  "rules",
  "templates",
  "groups",
  "deciding",
  "kinds",
  "queue",
  "sending",
  "api",
];
