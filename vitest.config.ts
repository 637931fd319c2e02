import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { nightly } from "./test/support/cases.ts";
import { onCitus } from "./test/support/citus.ts";
import { closingLine } from "./test/support/closing-line.ts";
import { longestFirst } from "./test/support/longest-first.ts";

/**
 * A file's name says when it plays. `npm test`, before each commit: `*.test.ts`, which is pure, needs PostgreSQL or one server. The gate,
 * `.ci/run`: `*.system.test.ts` as well, which starts or kills processes, opens Chromium, runs programs of others or takes a full size.
 * `npm run test:nightly`: both, with all seeds, cases and sizes (design/releases-and-tests).
 */
const all = "test/**/*.test.{ts,tsx}";
const system = "test/**/*.system.test.ts";

/** One more than processors: a test waits for a good part of its time, for a timer or for PostgreSQL. */
const maxWorkers = availableParallelism() + 1;

/** Changes the schema that all files of a worker share. */
const apart = "test/auth/undeclared.test.ts";

/** These read the statements that the others have sent, in a commit's tests and in the gate. */
const statements = "test/statements.test.ts";
const plans = "test/statement-plans.system.test.ts";
const nodes = "test/statement-nodes.test.ts";

/** These measure the memory of a process, or processor time of its turns, which neighbours stretch: one after the other. */
const alone = globSync(system).filter((path) =>
  /longestTurn\(|loopTurns\(|VmHWM|VmRSS/.test(readFileSync(path, "utf8")),
);

const shared = {
  environment: "node",
  pool: "forks",
  // The files of one worker share its modules and its server: to load and start them for each takes longer than most tests.
  isolate: false,
  // These end what hangs, also on a machine that is busy with something else.
  testTimeout: nightly ? 1_800_000 : 400_000,
  hookTimeout: 400_000,
  expect: { poll: { timeout: 120_000 } },
  // A line of the end of a run says what was wrong.
  chaiConfig: { truncateThreshold: 1000 },
  allowOnly: false,
  // Also on a machine where `auto` means several.
  env: { BELFRY_PROCESSES: "1" },
  setupFiles: ["test/support/collect-statements.ts", "test/support/check-answers.ts", "test/support/draw-cases.ts"],
};

const commitProjects = [
  {
    test: {
      ...shared,
      name: "commit",
      include: [all],
      exclude: [system, apart, statements, nodes],
      sequence: { groupOrder: 0 },
    },
  },
  { test: { ...shared, name: "commit, apart", isolate: true, include: [apart], sequence: { groupOrder: 0 } } },
  { test: { ...shared, name: "commit, statements", include: [statements], sequence: { groupOrder: 1 } } },
];

const gateProjects = [
  {
    test: { ...shared, name: "gate", include: [system], exclude: [...alone, plans], sequence: { groupOrder: 2 } },
  },
  {
    test: { ...shared, name: "gate, alone", maxWorkers: 1, include: alone, sequence: { groupOrder: 3 } },
  },
  { test: { ...shared, name: "gate, statements", include: [plans], sequence: { groupOrder: 4 } } },
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
      exclude: [apart],
      sequence: { groupOrder: 0 },
    },
  },
  // One after the other: they kill nodes.
  {
    test: {
      ...shared,
      name: "citus faults",
      maxWorkers: 1,
      include: ["test/faults/{failover,groups,lost-worker*,moved-tenant}.system.test.ts"],
      sequence: { groupOrder: 1 },
    },
  },
  {
    test: {
      ...shared,
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
        "test/start/package.system.test.ts",
        "test/embedded/embedded.system.test.ts",
        "test/bench/bench.system.test.ts",
        "test/faults/failpoints.system.test.ts",
        "test/faults/kill.system.test.ts",
        "test/faults/points.system.test.ts",
        "test/faults/upgrade.system.test.ts",
        "test/faults/notifications.system.test.ts",
        "test/faults/full-disk.system.test.ts",
        "test/faults/updaters.system.test.ts",
        "test/faults/late-matching.system.test.ts",
        "test/faults/full-fields.system.test.ts",
        "test/processes/processes.system.test.ts",
        "test/credentials/rotate.system.test.ts",
        "test/clients/readme.test.ts",
        "test/console/list.system.test.ts",
        "test/console/send.system.test.ts",
        "test/console/layout.system.test.ts",
        "test/console/keys.system.test.ts",
        "test/http/pages.system.test.ts",
        "test/console/sessions.system.test.ts",
        "test/console/mishaps.test.ts",
        "test/console/screens.system.test.ts",
        "test/db/paging/large-answers.system.test.ts",
        "test/backup/export.system.test.ts",
        "test/clients/buf-curl.system.test.ts",
        "test/clients/browser.system.test.ts",
        "test/proto/document.system.test.ts",
        "test/backup/interrupted.system.test.ts",
        "test/secrets.system.test.ts",
      ]),
    },
    reporters: ["default", closingLine({ check: process.env.CHECK === "beside" })],
    projects: onCitus ? citusProjects : [...commitProjects, ...gateProjects],
  },
});
