import fc from "fast-check";
import { expect, test } from "vitest";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { downsample } from "../../src/metrics/aggregate.ts";
import { cases } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();
const periodMs = 60_000;

/** The same value as a decimal number, of which none is rounded off. */
const exact = "value::text::numeric";
/** What PostgreSQL makes of the same points, by bucket. */
const inSql = {
  COUNT: "count(*)::float8",
  SUM: `sum(${exact})::float8`,
  MEAN: `avg(${exact})::float8`,
  MIN: "min(value)",
  MAX: "max(value)",
  STDDEV: `stddev_pop(${exact})::float8`,
  P5: "percentile_cont(0.05) within group (order by value)",
  P50: "percentile_cont(0.5) within group (order by value)",
  P95: "percentile_cont(0.95) within group (order by value)",
  P99: "percentile_cont(0.99) within group (order by value)",
  LAST: "(array_agg(value order by time desc))[1]",
} as const;

const point = fc.tuple(
  fc.integer({ min: 0, max: 10 * periodMs - 1 }),
  fc.oneof(
    fc.integer({ min: -1000, max: 1000 }),
    fc.double({ min: -1e6, max: 1e6, noNaN: true }),
    fc.constantFrom(0.1, 1e15, -1e15),
  ),
);

test("aggregates are what PostgreSQL makes of the same points", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(point, { selector: ([time]) => time, minLength: 1, maxLength: 200 }),
      async (all) => {
        const points = all.toSorted(([a], [b]) => a - b);
        const times = Float64Array.from(points, ([time]) => time);
        const values = Float64Array.from(points, ([, value]) => value);
        const columns = Object.entries(inSql).map(([name, expression]) => `${expression} as "${name}"`);
        const rows = await sql.unsafe<({ bucket: number } & Record<keyof typeof inSql, number>)[]>(
          `select (time / ${periodMs} * ${periodMs})::float8 as bucket, ${columns.join(", ")}
         from unnest('{${times.join(",")}}'::bigint[], '{${values.join(",")}}'::float8[]) as points (time, value)
         group by 1 order by 1`,
        );
        const size = Math.max(1, ...values.map(Math.abs));
        for (const name of Object.keys(inSql) as (keyof typeof inSql)[]) {
          const how = { aggregator: Aggregator[name], periodMs, startMs: 0, endMs: 10 * periodMs, isRate: false };
          const made = downsample({ times, values }, how);
          expect([...made.times]).toEqual(rows.map(({ bucket }) => bucket));
          for (const [i, row] of rows.entries()) {
            const wanted = Number(row[name]);
            // A value is not quite the decimal number that it is written as.
            const near = 1e-12 * Math.max(size, Math.abs(wanted));
            expect(Math.abs((made.values[i] as number) - wanted)).toBeLessThanOrEqual(near);
          }
        }
      },
    ),
    { numRuns: cases(80) },
  );
}, 60_000);
