import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { onCitus } from "./test/support/citus.ts";
import { closingLine } from "./test/support/closing-line.ts";
import { longestFirst } from "./test/support/longest-first.ts";
import { heavy } from "./test/support/part.ts";

/**
 * Two parts: `npm test`, minutes, and `npm run test:heavy` with full sizes and with bounds on time. A file whose source asks for the
 * sizes of a part plays in both; one that ends in `.heavy.test.ts` in the second alone; every other in the first alone.
 */
const heavyOnly = "test/**/*.heavy.test.ts";
const inBoth = globSync("test/**/*.test.ts").filter((path) =>
  /\/part\.ts"|\b(?:turnMsMax|neighbourBound)\b/.test(readFileSync(path, "utf8")),
);

/** Servers and databases that die and start again. */
const faults = ["test/faults/**/*.test.ts", "test/start/**/*.test.ts", "test/db/embedded/embedded.test.ts"];

/** One more than processors: a test waits for a good part of its time, for a timer or for PostgreSQL. */
const maxWorkers = availableParallelism() + 1;

/** Changes the schema that all files of a worker share. */
const apart = "test/auth/undeclared.test.ts";

/** In the heavy part these measure how fast the server answers: a test beside them would be measured too. */
const alone = [
  "test/faults/full-disk.heavy.test.ts",
  "test/faults/failpoints.test.ts",
  "test/faults/full-fields.test.ts",
  "test/faults/hostile*.test.ts",
  "test/faults/new-series.test.ts",
  "test/faults/notifications-pace.test.ts",
  "test/faults/notifications.test.ts",
  "test/faults/stopped.heavy.test.ts",
  "test/faults/upgrade.test.ts",
  "test/faults/windows.test.ts",
  "test/db/circuit-breaker.test.ts",
  "test/http/refusal.test.ts",
  "test/properties/slices.test.ts",
];

const shared = {
  environment: "node",
  pool: "forks",
  // The files of one worker share its modules: to load them anew for each takes longer than most tests.
  isolate: false,
  // These end what hangs, also on a machine that is busy with something else.
  testTimeout: 60_000,
  hookTimeout: 120_000,
  // On a machine that others use, one test in thousands may depend on it: tried again once there, and named by the closing lines.
  retry: process.env.CI === undefined ? 0 : 1,
  allowOnly: false,
  // Also on a machine where `auto` means several.
  env: { BELFRY_PROCESSES: "1" },
  setupFiles: ["test/support/collect-statements.ts", "test/support/check-answers.ts"],
};

/** These read the statements that the others have sent. */
const last = ["test/statements.test.ts", "test/statement-plans.test.ts"];
const lastOnCitus = "test/statement-nodes.test.ts";

const lightProjects = [
  {
    test: {
      ...shared,
      name: "together",
      include: ["test/**/*.test.ts"],
      exclude: [...faults, apart, ...last, lastOnCitus, heavyOnly],
      sequence: { groupOrder: 0 },
    },
  },
  // In one queue with the files above, and before them: the short ones come last, and no worker stands idle for long.
  { test: { ...shared, name: "faults", include: faults, exclude: [heavyOnly], sequence: { groupOrder: 0 } } },
  { test: { ...shared, name: "apart", isolate: true, include: [apart], sequence: { groupOrder: 0 } } },
  { test: { ...shared, name: "statements", include: last, sequence: { groupOrder: 1 } } },
];

/** Scenes and sizes, which keep all processors busy; then what compares times, two files at once; then what measures the whole server. */
const isScene = (path: string) => /^test\/(?:faults|events|entities)\//.test(path);
const heavyProjects = [
  {
    test: {
      ...shared,
      name: "scenes",
      include: [heavyOnly, ...inBoth.filter(isScene)],
      exclude: alone,
      sequence: { groupOrder: 0 },
    },
  },
  {
    test: {
      ...shared,
      name: "timed",
      include: inBoth.filter((path) => !isScene(path)),
      exclude: alone,
      maxWorkers: 2,
      sequence: { groupOrder: 1 },
    },
  },
  {
    test: {
      ...shared,
      name: "alone",
      include: alone,
      maxWorkers: 1,
      // These hold the server to milliseconds, on a machine whose own speed varies (decisions/0079).
      retry: process.env.CI === undefined ? 0 : 2,
      sequence: { groupOrder: 2 },
    },
  },
];

/**
 * What touches SQL, on a cluster. Not there: test/db, of the driver, the embedded PostgreSQL, migrations and files of exports, but for what
 * distributes; test/http, wire, transcoding and proto, of what never reaches SQL; test/console, whose statements test/tenants and the others send;
 * what test/support/one-postgres.ts names.
 */
const citusProjects = [
  {
    test: {
      ...shared,
      name: "citus",
      include:
        "auth cli integrations telemetry regressions jobs metrics entities events notifications maintenance properties receiver users credentials dictionary tenants"
          .split(" ")
          .map((folder) => `test/${folder}/**/*.test.ts`)
          .concat("test/db/distribute*.test.ts"),
      exclude: [heavyOnly, apart],
      // Three nodes share the machine.
      testTimeout: 240_000,
      sequence: { groupOrder: 0 },
    },
  },
  // One after the other: they kill nodes.
  {
    test: {
      ...shared,
      name: "citus faults",
      maxWorkers: 1,
      include: ["test/faults/{failover,lost-worker*,moved-tenant}.test.ts"],
      testTimeout: 240_000,
      sequence: { groupOrder: 1 },
    },
  },
  {
    test: {
      ...shared,
      name: "citus statements",
      include: [lastOnCitus],
      testTimeout: 240_000,
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
        "test/bench/bench.heavy.test.ts",
        "test/db/embedded/embedded.test.ts",
        "test/faults/points.test.ts",
        "test/faults/kill.test.ts",
        "test/faults/upgrade.test.ts",
        "test/faults/full-fields.test.ts",
        "test/faults/updaters.test.ts",
        "test/faults/full-disk.heavy.test.ts",
        "test/clients/tour.test.ts",
        "test/console/many-events.heavy.test.ts",
        "test/console/sight.heavy.test.ts",
        "test/faults/failpoints.test.ts",
        "test/faults/pauses.test.ts",
        "test/faults/watch.test.ts",
        "test/faults/late-matching.test.ts",
        "test/faults/notifications.test.ts",
        "test/http/pages.test.ts",
        "test/http/unread-responses.test.ts",
        "test/console/sessions.test.ts",
        "test/console/mishaps.test.ts",
        "test/console/screens.test.ts",
        "test/start/package.test.ts",
        "test/http/uploads.test.ts",
        "test/clients/browser.test.ts",
        "test/jobs/worker.test.ts",
        "test/db/dump/interrupted.test.ts",
        "test/console/events.test.ts",
        "test/db/paging/large-answers.test.ts",
        "test/secrets.test.ts",
        "test/faults/hostile-loads.test.ts",
        "test/processes/processes.test.ts",
        "test/entities/search.test.ts",
        "test/faults/windows.test.ts",
        "test/receiver/bad-items.test.ts",
        "test/console/tasks.test.ts",
        "test/http/refusal.test.ts",
        "test/credentials/rotate.test.ts",
        "test/cli/tenants.test.ts",
        "test/events/idle-watches.test.ts",
        "test/events/storm.test.ts",
      ]),
    },
    reporters: ["default", closingLine()],
    projects: onCitus ? citusProjects : heavy ? heavyProjects : lightProjects,
  },
});
