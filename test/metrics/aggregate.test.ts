import fc from "fast-check";
import { expect, test } from "vitest";
import { Aggregator, AggregatorSchema } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { type Downsampling, downsample } from "../../src/metrics/aggregate.ts";
import { cases } from "../support/cases.ts";
import { type Point, plainDownsample } from "./plain.ts";

const toPoints = (points: readonly Point[]) => ({
  times: Float64Array.from(points, ([time]) => time),
  values: Float64Array.from(points, ([, value]) => value),
});

function downsampled(points: readonly Point[], how: Downsampling): Point[] {
  const { times, values } = downsample(toPoints(points), how);
  return [...times].map((time, i) => [time, values[i] as number]);
}

const hourMs = 3_600_000;
const timeMs = fc.oneof(fc.integer({ min: -50, max: 200 }), fc.integer({ min: -60 * hourMs, max: 60 * hourMs }));
const points = fc
  .uniqueArray(fc.tuple(timeMs, fc.integer({ min: -20, max: 20 })), { selector: ([time]) => time, maxLength: 60 })
  .map((list) => list.sort(([a], [b]) => a - b));
const range = fc.oneof(
  fc.record({
    startMs: fc.integer({ min: -60, max: 100 }),
    lengthMs: fc.integer({ min: 1, max: 200 }),
    periodMs: fc.integer({ min: 1, max: 300 }),
  }),
  fc.record({
    startMs: fc.integer({ min: -30 * hourMs, max: 0 }),
    lengthMs: fc.integer({ min: 1, max: 30 * hourMs }),
    periodMs: fc.integer({ min: hourMs / 4, max: 50 * hourMs }),
  }),
);

test.each(
  AggregatorSchema.values.filter(({ number }) => number > 0).map(({ name, number }) => [name, number] as const),
)("%s equals the plain implementation, whatever points, range and period", (_name, aggregator) => {
  fc.assert(
    fc.property(points, range, fc.boolean(), (list, { startMs, lengthMs, periodMs }, isRate) => {
      const how = { aggregator: aggregator as Aggregator, periodMs, startMs, endMs: startMs + lengthMs, isRate };
      const expected = plainDownsample(list, how);
      const made = downsampled(list, how);
      expect(made.map(([time]) => time)).toEqual(expected.map(([time]) => time));
      for (const [i, [, value]] of made.entries()) expect(value).toBeCloseTo((expected[i] as Point)[1], 9);
    }),
    { numRuns: cases(300) },
  );
});

const everyMinute = (...values: number[]) => values.map((value, i): Point => [i * 60_000, value]);
const how = { periodMs: 120_000, startMs: 0, endMs: 600_000, isRate: false };

test("changes add up: those of the buckets are the change over the range", () => {
  const list = everyMinute(5, 7, 1, 9, 4, 4, 8, 2, 6, 3);
  const changes = downsampled(list, { ...how, startMs: 90_000, aggregator: Aggregator.DELTA });
  expect(changes.reduce((total, [, value]) => total + value, 0)).toBe(3 - 7);
});

test("a counter that started again counts from 0 where the dictionary says isRate", () => {
  const list = everyMinute(100, 110, 5, 15);
  const delta = { ...how, periodMs: 600_000, aggregator: Aggregator.DELTA };
  expect(downsampled(list, delta)).toEqual([[0, -85]]);
  expect(downsampled(list, { ...delta, isRate: true })).toEqual([[0, 25]]);
});

test("sums beyond the largest number do not spoil the mean", () => {
  const list = everyMinute(1.5e308, 1.5e308, 1.5e308);
  expect(downsampled(list, { ...how, periodMs: 600_000, aggregator: Aggregator.MEAN })[0]?.[1]).toBeCloseTo(
    1.5e308,
    -300,
  );
});

const overall = { ...how, periodMs: 600_000 };
const of = (aggregator: Aggregator, ...values: number[]) =>
  downsampled(everyMinute(...values), { ...overall, aggregator })[0]?.[1];

test.each([
  ["the mean of equal values is that value", Aggregator.MEAN, [0.1, 0.1, 0.1], 0.1],
  ["equal values do not deviate", Aggregator.STDDEV, [0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 0],
  ["equal values do not deviate, the largest neither", Aggregator.STDDEV, Array(7).fill(Number.MAX_VALUE), 0],
  ["the mean of the largest numbers is one", Aggregator.MEAN, Array(7).fill(Number.MAX_VALUE), Number.MAX_VALUE],
  ["a sum keeps what is small beside what cancels out", Aggregator.SUM, [1e220, 45, -1e220], 45],
  ["a mean keeps what is small beside what cancels out", Aggregator.MEAN, [1e220, 45, -1e220], 15],
  ["a sum of tenths is rounded once", Aggregator.SUM, Array(10).fill(0.1), 1],
  ["a sum that is finite is so whatever comes first", Aggregator.SUM, [1.7e308, 1.7e308, -1.7e308, -1.7e308, 3], 3],
  ["the middle of the furthest numbers", Aggregator.P50, [-1.7e308, 1.7e308], 0],
  ["the deviation of what has no square", Aggregator.STDDEV, [-1e200, 1e200], 1e200],
  ["the deviation of what has a square of 0", Aggregator.STDDEV, [-1e-200, 1e-200], 1e-200],
])("%s", (_, aggregator, values, wanted) => {
  expect(of(aggregator, ...values)).toBe(wanted);
});

test("a value between the furthest numbers is finite", () => {
  const list: Point[] = [
    [-30_000, -1.7e308],
    [30_000, 1.7e308],
  ];
  expect(downsampled(list, { ...overall, aggregator: Aggregator.INTERPOLATE })[0]).toEqual([0, 0]);
});

test("percentiles of very many points are those of the sorted ones", () => {
  const values = Float64Array.from({ length: 30_001 }, (_, i) => ((i * 7919) % 30_011) - (i % 3));
  const points = { times: Float64Array.from(values, (_, i) => i), values };
  const sorted = values.toSorted();
  const how = { periodMs: 60_000, startMs: 0, endMs: 60_000, isRate: false };
  for (const [aggregator, share] of [
    [Aggregator.P5, 0.05],
    [Aggregator.P50, 0.5],
    [Aggregator.P95, 0.95],
    [Aggregator.P99, 0.99],
  ] as const) {
    const rank = share * (values.length - 1);
    const [low, high] = [sorted[Math.floor(rank)] as number, sorted[Math.ceil(rank)] as number];
    const [value] = downsample(points, { ...how, aggregator }).values;
    expect(value).toBeCloseTo(low + (high - low) * (rank - Math.floor(rank)), 9);
  }
});
