import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { mergeHead } from "../../src/metrics/merge.ts";
import type { StoredPoints } from "../../src/metrics/store.ts";
import { cases } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { makeRoom, mergeAll, put, type Sent, stored, testStore } from "./points.ts";

const { sql } = await testDatabase();
const dayMs = 86_400_000;
// The second of three partitions, so that points lie on both sides of a border.
const borderMs = 700 * 30 * dayMs;
beforeAll(() => makeRoom(sql, borderMs - 40 * dayMs, borderMs + 40 * dayMs));

/** What should be there: by metric, the last value of each time. */
function modelOf(sent: readonly Sent[]) {
  const model = new Map<string, Map<number, number>>();
  for (const { metric, timeMs, value } of sent) {
    if (!model.has(metric)) model.set(metric, new Map());
    model.get(metric)?.set(timeMs, value);
  }
  return Object.fromEntries([...model].map(([metric, points]) => [metric, [...points].sort(([a], [b]) => a - b)]));
}

const everything = [borderMs - 39 * dayMs, borderMs + 39 * dayMs] as const;

describe("what was stored is read, whatever has been merged in between", () => {
  const sent = fc.record({
    metric: fc.constantFrom("cpu", "memory", "disk"),
    timeMs: fc.oneof(
      fc.integer({ min: borderMs - 20, max: borderMs + 20 }),
      fc.integer({ min: borderMs - 3 * dayMs, max: borderMs + 3 * dayMs }),
    ),
    value: fc.oneof(fc.integer({ min: -100, max: 100 }), fc.double({ noNaN: true, noDefaultInfinity: true })),
  });
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.array(sent, { minLength: 1, maxLength: 30 }) },
    { weight: 1, arbitrary: fc.constantFrom("merge all" as const, "merge" as const) },
  );

  test("in any order, several times, on both sides of a merge, of a day and of a partition", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        const { id } = await testTenant(sql);
        const store = testStore();
        const all: Sent[] = [];
        for (const each of steps) {
          if (each === "merge all") await mergeAll(sql, id);
          else if (each === "merge") await transaction(sql, (tx) => mergeHead(tx, id, Date.now()));
          else {
            await put(sql, store, id, each);
            all.push(...each);
          }
        }
        expect(await stored(sql, id, ...everything)).toEqual(modelOf(all));
        await mergeAll(sql, id);
        expect(await stored(sql, id, ...everything)).toEqual(modelOf(all));
      }),
      { numRuns: cases(40) },
    );
  }, 120_000);

  test("through all levels of the head, and out of it into chunks that do not overlap", async () => {
    const { id } = await testTenant(sql);
    const store = testStore();
    const all: Sent[] = [];
    // Few points of many series, so that none is worth a chunk yet.
    for (let i = 0; i < 336; i += 16) {
      await transaction(sql, async (tx) => {
        for (let j = i; j < i + 16; j++) {
          const points = Array.from({ length: 16 }, (_, k) => ({
            metric: `metric ${(j * 16 + k) % 640}`,
            timeMs: borderMs + ((j * 7919) % 60) * 1000,
            value: j,
          }));
          all.push(...points);
          await put(tx, store, id, points);
        }
        if (i < 320) await mergeHead(tx, id, Date.now());
      });
    }
    const levels = await sql<{ level: number }[]>`
      select distinct level from metric_heads where tenant_id = ${id} order by level`;
    expect(levels.map(({ level }) => level)).toEqual([0, 1, 2]);
    expect(await stored(sql, id, ...everything)).toEqual(modelOf(all));
    await mergeAll(sql, id);
    expect(await sql`select 1 from metric_heads where tenant_id = ${id}`).toHaveLength(0);
    const overlaps = await sql`
      select 1 from metric_chunks a join metric_chunks b on b.tenant_id = a.tenant_id and b.series = a.series
      where a.tenant_id = ${id} and a.first_ms < b.first_ms and a.last_ms >= b.first_ms`;
    expect(overlaps).toHaveLength(0);
    expect(await stored(sql, id, ...everything)).toEqual(modelOf(all));
  }, 120_000);

  test("8,000 points of one series at once, and 40,000 of one day in several chunks", async () => {
    const { id } = await testTenant(sql);
    const store = testStore();
    const all = Array.from({ length: 40_000 }, (_, i) => ({
      metric: "cpu",
      timeMs: borderMs + i * 1000,
      value: i % 97,
    }));
    for (let from = 0; from < all.length; from += 8000) await put(sql, store, id, all.slice(from, from + 8000));
    await mergeAll(sql, id);
    const late = { metric: "cpu", timeMs: borderMs + 5_000_500, value: -1 };
    await put(sql, store, id, [late]);
    await mergeAll(sql, id);
    expect(await stored(sql, id, ...everything)).toEqual(modelOf([...all, late]));
    const chunks = await sql<{ points: number }[]>`
      select points from metric_chunks where tenant_id = ${id} order by first_ms`;
    expect(chunks.map(({ points }) => points)).toEqual([16_384, 16_384, 7233]);
  }, 120_000);

  test("a day that comes bit by bit lies in few chunks, and each point is written a few times only", async () => {
    const { id } = await testTenant(sql);
    const store = testStore();
    const all: Sent[] = [];
    let written = 0;
    let before = new Map<bigint, number>();
    for (let i = 0; i < 72; i++) {
      const some = Array.from({ length: 120 }, (_, j) => ({
        metric: "cpu",
        timeMs: borderMs + (i * 120 + j) * 10_000,
        value: (i * 31 + j) % 89,
      }));
      all.push(...some);
      await put(sql, store, id, some);
      await mergeAll(sql, id);
      const chunks = await sql<{ first_ms: bigint; points: number }[]>`
        select first_ms, points from metric_chunks where tenant_id = ${id}`;
      expect(chunks.length).toBeLessThanOrEqual(6);
      for (const { first_ms, points } of chunks) if (before.get(first_ms) !== points) written += points;
      before = new Map(chunks.map(({ first_ms, points }) => [first_ms, points]));
    }
    expect(written / all.length).toBeLessThan(8);
    expect(await stored(sql, id, ...everything)).toEqual(modelOf(all));
  }, 120_000);
});

describe("series", () => {
  const point = (metric: string): Sent => ({ metric, timeMs: borderMs, value: 1 });

  test("are numbered once, however many servers see them first at the same time", async () => {
    const { id } = await testTenant(sql);
    const metrics = Array.from({ length: 50 }, (_, i) => `metric ${i}`);
    await Promise.all(
      Array.from({ length: 6 }, async (_, server) => {
        const own = metrics.slice((server * 7) % 20).map(point);
        await put(sql, testStore(), id, own);
      }),
    );
    const rows = await sql<{ number: bigint }[]>`select number from series where tenant_id = ${id} order by number`;
    expect(rows.map(({ number }) => Number(number))).toEqual(metrics.map((_, i) => i + 1));
    const [counts] = await sql`select last_number, count from series_counts where tenant_id = ${id}`;
    expect(counts).toEqual({ last_number: 50n, count: 50n });
  });

  test("beyond the bound of the tenant are refused, those that are there are not", async () => {
    const { id } = await testTenant(sql);
    const store = testStore({ seriesMax: 2 });
    expect(await put(sql, store, id, ["a", "b", "c", "a"].map(point))).toEqual([2]);
    expect(await put(sql, testStore({ seriesMax: 2 }), id, ["d", "b"].map(point))).toEqual([0]);
    expect(Object.keys(await stored(sql, id, ...everything)).sort()).toEqual(["a", "b"]);
  });

  test("that are known are not looked up", async () => {
    const { id } = await testTenant(sql);
    const store = testStore();
    await put(sql, store, id, [point("a")]);
    await sql`update series set unused_ms = 5 where tenant_id = ${id}`;
    await put(sql, store, id, [point("a")]);
    const marks = () => sql`select unused_ms from series where tenant_id = ${id}`;
    expect(await marks()).toEqual([{ unused_ms: 5n }]);
    // Ten minutes later they are looked up again, which clears the mark.
    await put(sql, store, id, [point("a")], Date.now() + 600_001);
    expect(await marks()).toEqual([{ unused_ms: null }]);
  });

  test("of a transaction that failed are not remembered", async () => {
    const { id } = await testTenant(sql);
    const failing = testStore({ onPoints: () => Promise.reject(new Error("no")) });
    await expect(put(sql, failing, id, [point("a")])).rejects.toThrow("no");
    expect(await put(sql, { ...failing, async onPoints() {} }, id, [point("a")])).toEqual([]);
    expect(await stored(sql, id, ...everything)).toEqual({ a: [[borderMs, 1]] });
  });
});

test("a hook is handed the points as columns, inside the transaction", async () => {
  const { id } = await testTenant(sql);
  const heard: StoredPoints[] = [];
  const store = testStore({
    seriesMax: 2,
    async onPoints(tx, tenantId, points) {
      heard.push(points);
      const rows = await tx`select 1 from series where tenant_id = ${tenantId}`;
      expect(rows).toHaveLength(2);
    },
  });
  const sent = ["a", "b", "c", "a"].map((metric, i) => ({ metric, timeMs: borderMs + i, value: i }));
  await put(sql, store, id, sent);
  const [points] = heard as [StoredPoints];
  const series = points.seriesOf(() => true);
  const metrics = [...points.series].map((number) => series.get(number)?.metric);
  expect(metrics).toEqual(["a", "b", "a"]);
  const [first = 0] = points.series;
  expect([...points.seriesOf((metric) => metric === "a").keys()]).toEqual([first]);
  expect([...points.times]).toEqual([borderMs, borderMs + 1, borderMs + 3]);
  expect([...points.values]).toEqual([0, 1, 3]);
});
