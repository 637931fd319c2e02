/** Folders of `src/` that know no domain, in import order. */
export const mechanisms: readonly string[] = ["db", "auth", "clause", "jobs", "wire", "transcoding", "rpc", "http"];

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

/** Folders of `src/` at the ends of the order: settings, which know nothing. */
export const edges: readonly string[] = ["config"];

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
  "errors",
  "config",
  "failpoint",
  "log",
  "limiter",
  "histogram",
  "event-loop",
  ...mechanisms,
  ...domains,
  "transfer",
  "retention",
  ...observers,
  "command-line",
  "server",
  "schema",
  "welcome",
  "main",
];

/** Names that may import less than the order allows, and what is left to them. */
export const strictImports: Readonly<Record<string, readonly string[]>> = {
  gen: [],
  wire: ["gen", "event-loop"],
  transcoding: ["gen", "event-loop", "wire"],
  clause: ["gen", "errors", "db", "event-loop"],
};
