import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { uuidArray } from "../../src/db/batch.ts";
import { listener } from "../../src/db/listen.ts";
import { transaction } from "../../src/db/transaction.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { startJobs } from "../../src/jobs/start.ts";
import type { JobKind } from "../../src/jobs/worker.ts";
import { testDatabase } from "../support/database.ts";
import { bareTenant } from "../support/tenant.ts";

const database = await testDatabase({ poolConnectionsMax: 16 });
const { sql, pool } = database;
const nowMs = () => Math.floor(performance.timeOrigin + performance.now());

test("a process that has more to do than it takes on is helped by the others at once", async () => {
  const log = { info() {}, warn: console.warn, error: console.error };
  const began: string[] = [];
  const kindOf = (by: string): JobKind => ({
    name: "slow",
    sizeMax: 1,
    async run() {
      began.push(by);
      await sleep(300);
      return [];
    },
  });
  const [one] = ["one", "two"].map((by) => {
    const replicas = listener(database.url);
    const jobs = startJobs(pool, replicas, { kinds: [kindOf(by)], nowMs, log });
    onTestFinished(async () => {
      await jobs.stop();
      await replicas.stop();
    });
    return jobs;
  });
  const listening = () => sql`
    select from pg_stat_activity where datname = current_database() and query like 'listen %'`;
  await expect.poll(async () => (await listening()).count).toBe(2);
  const tenants = await Promise.all(Array.from({ length: 8 }, () => bareTenant(sql)));
  await transaction(sql, async (tx) => {
    for (const tenantId of tenants) await enqueue(tx, { tenantId, kind: "slow" }, [{ payload: 1 }], nowMs());
  });
  one?.wake();
  const left = () => sql`select from jobs where tenant_id = any(${uuidArray(tenants)}::uuid[])`;
  await expect.poll(async () => (await left()).count).toBe(0);
  expect(began).toHaveLength(8);
  expect(new Set(began).size).toBe(2);
});
