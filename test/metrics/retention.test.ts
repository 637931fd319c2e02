import { expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { forms } from "../../src/metrics/forms.ts";
import { ageSeries } from "../../src/metrics/retention.ts";
import { seriesMemory } from "../../src/metrics/series-memory.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { makeRoom, mergeAll, put } from "./points.ts";

const { sql } = await testDatabase();
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

test("a series without points is marked, and goes an hour later unless it is looked up meanwhile", async () => {
  const { id } = await testTenant(sql);
  const nowMs = Date.now();
  await makeRoom(sql, nowMs - dayMs, nowMs + dayMs);
  const store = { memory: seriesMemory(), forms: forms(), seriesMax: 10 };
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
