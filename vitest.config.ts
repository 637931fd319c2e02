import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { closingLine } from "./test/support/closing-line.ts";
import { longestFirst } from "./test/support/longest-first.ts";

/** Servers and databases that die and start again. */
const faults = ["test/faults/**/*.test.ts", "test/start/**/*.test.ts", "test/db/embedded/embedded.test.ts"];

/** One more than processors: a test waits for a good part of its time, for a timer or for PostgreSQL. */
const maxWorkers = availableParallelism() + 1;

/** Changes the schema that all files of a worker share. */
const apart = "test/auth/undeclared.test.ts";

/** These measure how fast the server answers: a test beside them would be measured too. */
const alone = [
  "test/faults/full-fields.test.ts",
  "test/faults/hostile.test.ts",
  "test/faults/hostile-answers.test.ts",
  "test/faults/hostile-bodies.test.ts",
  "test/faults/hostile-loads.test.ts",
  "test/faults/hostile-rules.test.ts",
  "test/faults/hostile-windows.test.ts",
  "test/faults/new-series.test.ts",
  "test/faults/stopped.test.ts",
  "test/faults/upgrade.test.ts",
  "test/faults/windows.test.ts",
  "test/db/gate.test.ts",
  "test/http/refusal.test.ts",
];

const shared = {
  environment: "node",
  pool: "forks",
  // The files of one worker share its modules: to load them anew for each takes longer than most tests.
  isolate: false,
  testTimeout: 20_000,
  hookTimeout: 60_000,
  allowOnly: false,
  setupFiles: ["test/support/collect-statements.ts", "test/support/check-answers.ts"],
};

/** These read the statements that the others have sent. */
const last = ["test/statements.test.ts", "test/statement-plans.test.ts"];

export default defineConfig({
  test: {
    // One PostgreSQL for the whole run; each test file clones its database from a template. The layout needs none.
    globalSetup:
      process.env.TEST_DATABASE_URL === "none" ? [] : ["test/support/database.ts", "test/support/statement-log.ts"],
    maxWorkers,
    teardownTimeout: 20_000,
    sequence: {
      sequencer: longestFirst([
        "test/faults/failpoints.test.ts",
        "test/faults/kill.test.ts",
        "test/faults/updaters.test.ts",
        "test/db/embedded/embedded.test.ts",
        "test/faults/points.test.ts",
        "test/faults/notifications.test.ts",
        "test/faults/watch.test.ts",
        "test/tenants/commands.test.ts",
        "test/http/untaken.test.ts",
        "test/jobs/worker.test.ts",
        "test/credentials/rotate.test.ts",
        "test/clients/browser.test.ts",
        "test/http/uploads.test.ts",
        "test/transcoding/plugin.test.ts",
        "test/clients/readme.test.ts",
        "test/events/idle-watches.test.ts",
        "test/secrets.test.ts",
        "test/clients/buf-curl.test.ts",
        "test/events/storm.test.ts",
      ]),
    },
    reporters: ["default", closingLine()],
    projects: [
      {
        test: {
          ...shared,
          name: "together",
          include: ["test/**/*.test.ts"],
          exclude: [...alone, ...faults, apart, ...last],
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...shared,
          name: "faults",
          include: faults,
          exclude: alone,
          // In one queue with the files above, and before them: the short ones come last, and no worker stands idle for long.
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...shared, name: "apart", isolate: true, include: [apart], sequence: { groupOrder: 0 } } },
      { test: { ...shared, name: "alone", include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } } },
      { test: { ...shared, name: "statements", include: last, sequence: { groupOrder: 2 } } },
    ],
  },
});
