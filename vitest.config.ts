import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { allCases } from "./test/support/cases.ts";
import { onCitus } from "./test/support/citus.ts";
import { closingLine } from "./test/support/closing-line.ts";
import { longestFirst } from "./test/support/longest-first.ts";

/**
 * Two tiers. `npm test` plays what is pure, needs the database or one server. `npm run test:system` plays what starts processes, kills
 * them, opens Chromium, runs programs of others, is held to a time or takes a full size: these folders, files that end in
 * `.system.test.ts`, and those that open a browser. Properties play in both, with all their cases in the second (design/releases-and-tests).
 */
const all = "test/**/*.test.{ts,tsx}";
const holding = (text: string) =>
  globSync("test/**/*.test.ts").filter((path) => readFileSync(path, "utf8").includes(text));
const importing = (module: string) => holding(`/support/${module}.ts"`);
const system = [
  "test/{faults,start,clients,processes,bench}/**/*.test.ts",
  "test/db/embedded/embedded.test.ts",
  "test/**/*.system.test.ts",
  ...importing("browser"),
];

/** One more than processors: a test waits for a good part of its time, for a timer or for PostgreSQL. */
const maxWorkers = availableParallelism() + 1;

/** Changes the schema that all files of a worker share. */
const apart = "test/auth/undeclared.test.ts";

/** These read the statements that the others have sent, in the first tier and in both. */
const statements = "test/statements.test.ts";
const plans = "test/statement-plans.system.test.ts";
const nodes = "test/statement-nodes.test.ts";

/** These keep processors busy for long, measure turns of an event loop, or how fast others are answered: one after the other. */
const alone = [
  ...[importing("loop-turns"), holding("longestTurn("), holding("neighbourBound(")]
    .flat()
    .filter((path) => /^test\/faults|\.system\./.test(path)),
  "test/console/many-events.test.ts",
  "test/faults/hostile.test.ts",
  "test/faults/hostile-bodies.test.ts",
  "test/faults/notifications-pace.test.ts",
  "test/faults/stopped.test.ts",
];

const shared = {
  environment: "node",
  pool: "forks",
  // The files of one worker share its modules and its server: to load and start them for each takes longer than most tests.
  isolate: false,
  // These end what hangs, also on a machine that is busy with something else.
  testTimeout: 60_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 30_000 } },
  // A line of the end of a run says what was wrong.
  chaiConfig: { truncateThreshold: 1000 },
  allowOnly: false,
  // Also on a machine where `auto` means several.
  env: { BELFRY_PROCESSES: "1" },
  setupFiles: ["test/support/collect-statements.ts", "test/support/check-answers.ts", "test/support/draw-cases.ts"],
};

/** The same of what starts servers, databases, browsers and nodes, which take minutes on a busy machine. */
const longer = { testTimeout: 400_000, hookTimeout: 400_000, expect: { poll: { timeout: 120_000 } } };

const firstProjects = [
  {
    test: {
      ...shared,
      name: "first",
      include: [all],
      exclude: [...system, apart, statements, nodes],
      sequence: { groupOrder: 0 },
    },
  },
  { test: { ...shared, name: "first, apart", isolate: true, include: [apart], sequence: { groupOrder: 0 } } },
  { test: { ...shared, name: "first, statements", include: [statements], sequence: { groupOrder: 1 } } },
];

/** These start and end servers, databases and browsers: in CI one that failed is tried once more, and named by the closing lines. */
const systemShared = { ...shared, ...longer, retry: process.env.CI === undefined ? 0 : 1 };
const systemProjects = [
  {
    test: {
      ...systemShared,
      name: "system",
      include: system,
      exclude: [...alone, plans],
      sequence: { groupOrder: 2 },
    },
  },
  {
    test: {
      ...systemShared,
      name: "system, alone",
      maxWorkers: 1,
      include: alone,
      sequence: { groupOrder: 3 },
    },
  },
  { test: { ...systemShared, name: "system, statements", include: [plans], sequence: { groupOrder: 4 } } },
];
const propertyProject = {
  test: {
    ...systemShared,
    name: "system, properties",
    include: importing("cases"),
    exclude: system,
    sequence: { groupOrder: 2 },
  },
};

/**
 * What touches SQL, on a cluster. Not there: test/db, of the driver, the embedded PostgreSQL, migrations and files of exports, but for what
 * distributes; test/http, wire, transcoding and proto, of what never reaches SQL; test/console, whose statements test/tenants and the others send;
 * what test/support/one-postgres.ts names.
 */
const citusProjects = [
  {
    test: {
      ...shared,
      ...longer,
      name: "citus",
      include:
        "auth cli integrations telemetry regressions jobs metrics entities events notifications maintenance properties receiver users credentials dictionary tenants"
          .split(" ")
          .map((folder) => `test/${folder}/**/*.test.ts`)
          .concat("test/db/distribute*.test.ts"),
      exclude: [apart],
      sequence: { groupOrder: 0 },
    },
  },
  // One after the other: they kill nodes.
  {
    test: {
      ...shared,
      ...longer,
      name: "citus faults",
      maxWorkers: 1,
      include: ["test/faults/{failover,groups,lost-worker*,moved-tenant}.test.ts"],
      sequence: { groupOrder: 1 },
    },
  },
  {
    test: {
      ...shared,
      ...longer,
      name: "citus statements",
      include: [nodes],
      sequence: { groupOrder: 2 },
    },
  },
];

export default defineConfig({
  test: {
    // One PostgreSQL for the whole run; each test file clones its database from a template. The layout needs none.
    globalSetup:
      process.env.TEST_DATABASE_URL === "none" ? [] : ["test/support/database.ts", "test/support/statement-log.ts"],
    maxWorkers,
    teardownTimeout: 20_000,
    sequence: {
      sequencer: longestFirst([
        "test/tenants/permissions.test.ts",
        "test/tenants.test.ts",
        "test/notifications/stale-data.test.ts",
        "test/users/status-codes.test.ts",
        "test/users/concurrency.test.ts",
        "test/integrations/opentelemetry.test.ts",
        "test/integrations/remote-write.test.ts",
        "test/entities/search.test.ts",
        "test/properties/updaters.test.ts",
        "test/dictionary/entries.test.ts",
        "test/events/watch-fan-out.test.ts",
        "test/receiver/bad-items.test.ts",
        "test/receiver/first-path.test.ts",
        "test/transcoding/round-trip.test.ts",
        "test/events/watch.test.ts",
        "test/metrics/store.test.ts",
        "test/tenants/sessions.test.ts",
        "test/notifications/destinations.test.ts",
        "test/notifications/triggers.test.ts",
        "test/clause/api.test.ts",
        "test/start/package.test.ts",
        "test/db/embedded/embedded.test.ts",
        "test/bench/bench.test.ts",
        "test/faults/failpoints.test.ts",
        "test/faults/kill.test.ts",
        "test/faults/points.test.ts",
        "test/faults/upgrade.test.ts",
        "test/faults/notifications.test.ts",
        "test/faults/full-disk.test.ts",
        "test/faults/updaters.test.ts",
        "test/faults/late-matching.test.ts",
        "test/faults/full-fields.test.ts",
        "test/processes/processes.test.ts",
        "test/credentials/rotate.system.test.ts",
        "test/clients/readme.test.ts",
        "test/console/many-events.test.ts",
        "test/console/sight.test.ts",
        "test/http/pages.test.ts",
        "test/console/sessions.test.ts",
        "test/console/mishaps.test.ts",
        "test/console/screens.test.ts",
        "test/db/paging/large-answers.system.test.ts",
        "test/db/dump/export.system.test.ts",
        "test/clients/buf-curl.test.ts",
        "test/clients/browser.test.ts",
        "test/proto/document.system.test.ts",
        "test/http/contrast.test.ts",
        "test/db/dump/interrupted.system.test.ts",
        "test/secrets.system.test.ts",
      ]),
    },
    reporters: ["default", closingLine({ check: process.env.CHECK === "beside" })],
    projects: onCitus ? citusProjects : [...firstProjects, ...systemProjects, ...(allCases ? [propertyProject] : [])],
  },
});
