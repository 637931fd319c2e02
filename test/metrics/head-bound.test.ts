import { expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { mergeHead } from "../../src/metrics/merge.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { makeRoom, put, testStore } from "./points.ts";

const { sql } = await testDatabase();

test("the head stays as large as what its series need for a chunk, however long points come", async () => {
  const { id } = await testTenant(sql);
  const nowMs = Date.now();
  await makeRoom(sql, nowMs - 86_400_000, nowMs + 86_400_000);
  const store = testStore();
  const series = 64;
  const rows: number[] = [];
  const points: number[] = [];
  for (let round = 0; round < 40; round++) {
    for (let write = 0; write < 4; write++) {
      const sent = Array.from({ length: series * 4 }, (_, i) => ({
        metric: `metric ${i % series}`,
        timeMs: nowMs - 3_600_000 + (round * 16 + write * 4 + Math.floor(i / series)) * 1000,
        value: i,
      }));
      await put(sql, store, id, sent);
    }
    await transaction(sql, (tx) => mergeHead(tx, id, Date.now()));
    const [head] = await sql<{ rows: number; points: number }[]>`
      select count(*)::float8 as rows, coalesce(sum(points), 0)::float8 as points from metric_heads where tenant_id = ${id}`;
    rows.push(head?.rows ?? 0);
    points.push(head?.points ?? 0);
  }
  // 120 points a series make a chunk; a round brings 16.
  expect(Math.max(...points)).toBeLessThanOrEqual(series * (120 + 16));
  expect(Math.max(...points.slice(20))).toBeLessThanOrEqual(Math.max(...points.slice(0, 20)));
  // 16 buckets, each with less than 16 writes of a level and those of one round.
  expect(Math.max(...rows)).toBeLessThanOrEqual(16 * (16 + 4) * 2);
}, 120_000);
