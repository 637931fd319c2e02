import { expect, test } from "vitest";
import { keepPartitions } from "../../src/db/partitions.ts";
import { transaction } from "../../src/db/transaction.ts";
import { mergingKind } from "../../src/metrics/merge.ts";
import { ageSeries, chunkPartitions } from "../../src/metrics/retention.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { makeRoom, mergeAll, put, stored, testStore } from "./points.ts";

const { sql } = await testDatabase();
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

test("a series without points is marked, and goes an hour later unless it is looked up meanwhile", async () => {
  const { id } = await testTenant(sql);
  const nowMs = Date.now();
  await makeRoom(sql, nowMs - dayMs, nowMs + dayMs);
  const store = testStore({ seriesMax: 10 });
  const point = (metric: string) => ({ metric, timeMs: nowMs, value: 1 });
  await put(sql, store, id, ["chunk", "head", "gone", "asked"].map(point), nowMs);
  await mergeAll(sql, id, nowMs);
  await put(sql, store, id, [point("head")], nowMs);
  await sql`
    delete from metric_chunks where tenant_id = ${id}
      and series in (select number from series where tenant_id = ${id} and metric <> 'chunk')`;
  const age = (atMs: number) => transaction(sql, (tx) => ageSeries(tx, id, 0, atMs, 400 * 86_400));
  const left = async () => {
    const rows = await sql<{ metric: string }[]>`select metric from series where tenant_id = ${id} order by metric`;
    return rows.map(({ metric }) => metric);
  };

  await age(nowMs + 3 * hourMs);
  await age(nowMs + 3.5 * hourMs);
  expect(await left()).toEqual(["asked", "chunk", "gone", "head"]);
  // Ten minutes after it was confirmed the number is not trusted any more: the series is asked for again.
  await put(sql, store, id, [point("asked")], nowMs + 3.9 * hourMs);
  await age(nowMs + 4 * hourMs);
  expect(await left()).toEqual(["asked", "chunk", "head"]);
  const [counts] = await sql`select last_number, count from series_counts where tenant_id = ${id}`;
  expect(counts).toEqual({ last_number: 4n, count: 3n });
}, 60_000);

test("points that waited in the head until their retention was over keep no others from being merged", async () => {
  const { id } = await testTenant(sql);
  const config = { metricRetentionSec: dayMs / 1000, modelAgeSecMax: dayMs / 1000, aheadSecMax: 600 };
  const table = chunkPartitions(config);
  const store = testStore({ seriesMax: 10 });
  // The end of a partition, long before those of other tests.
  const endMs = table.widthMs * 600;
  const nowMs = endMs + dayMs - 1000;
  await keepPartitions(sql, { ...table, keepMs: 100 * 365 * dayMs }, nowMs);
  const sent = [endMs - 1, endMs + 3000].map((timeMs) => ({ metric: "cpu", timeMs, value: 1 }));
  await put(sql, store, id, sent, nowMs);
  await keepPartitions(sql, table, nowMs + 2000);
  const job = { id: "head", payload: {}, size: 1, dueMs: 0, fence: 0n, failures: 0 };
  // Everything there is older than an hour, and due.
  await sql`update metric_heads set written_us = 1 where tenant_id = ${id}`;
  await transaction(sql, (tx) => mergingKind(config.metricRetentionSec).run(tx, id, [job], nowMs + 2000));
  expect((await sql`select from metric_heads where tenant_id = ${id}`).count).toBe(0);
  expect(await stored(sql, id, 0, nowMs)).toEqual({ cpu: [[endMs + 3000, 1]] });
});
