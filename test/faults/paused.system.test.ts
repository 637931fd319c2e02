import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { databaseClock } from "../../src/db/clock.ts";
import { connect } from "../../src/db/connect.ts";
import { migrate } from "../../src/db/migrate.ts";
import { startEmbedded } from "../../src/embedded/embedded.ts";
import { leadership } from "../../src/jobs/leader.ts";
import { clusterDir, poolOptions } from "../support/database.ts";
import { pausePostgres } from "./postgres-process.ts";

const quiet = { info() {}, warn() {}, error() {} };
const leaseMs = 600;

test("while PostgreSQL stands still and goes on again, no two replicas lead, and none loses the time", async () => {
  const dataDir = clusterDir();
  await using postgres = await startEmbedded({ dataDir, log: quiet, durable: false });
  await migrate(postgres.url);
  const replicas = await Promise.all(
    [1, 2].map(async () => {
      const pool = connect(postgres.url, poolOptions());
      const clock = await databaseClock(pool.system);
      return { pool, clock, lead: leadership(pool.system, "one", leaseMs) };
    }),
  );
  let both = 0;
  let wrongMs = 0;
  let led = 0;
  const watch = setInterval(() => {
    const leaders = replicas.filter(({ lead }) => lead.held()).length;
    led += leaders;
    if (leaders > 1) both += 1;
    // The database's clock is this machine's.
    for (const { clock } of replicas) wrongMs = Math.max(wrongMs, Math.abs(clock.nowMs() - Date.now()));
  }, 1);
  for (let round = 0; round < 2; round++) {
    // Replicas ask for the time while it stands still, too.
    const asked = sleep(50).then(() =>
      Promise.all(replicas.map(({ clock }) => clock.refresh().catch(() => undefined))),
    );
    await pausePostgres(dataDir, leaseMs * 1.5);
    await asked;
    await sleep(leaseMs);
  }
  clearInterval(watch);
  expect(both).toBe(0);
  expect(led).toBeGreaterThan(0);
  expect(wrongMs).toBeLessThan(300);
  for (const { pool, clock, lead } of replicas) {
    clock.stop();
    await lead.stop();
    await pool.close();
  }
});
