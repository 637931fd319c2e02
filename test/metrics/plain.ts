import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import type { Downsampling } from "../../src/metrics/aggregate.ts";

/** A point: its time in ms, and its value. */
export type Point = readonly [number, number];

const dayMs = 86_400_000;

/** What `downsample` does, written without regard to speed: bucket by bucket, from all points each time. */
export function plainDownsample(points: readonly Point[], how: Downsampling): Point[] {
  const { aggregator, periodMs, startMs, endMs } = how;
  const inRange = points.filter(([time]) => time >= startMs && time < endMs);
  if (aggregator === Aggregator.NONE) return inRange;
  const near = points.filter(([time]) => time >= startMs - dayMs && time <= endMs + dayMs);
  const made: Point[] = [];
  for (let bucket = Math.floor(startMs / periodMs) * periodMs; bucket < endMs; bucket += periodMs) {
    const own = inRange.filter(([time]) => time >= bucket && time < bucket + periodMs);
    const value = valueOf(bucket, own, near, how);
    if (value !== undefined) made.push([bucket, value]);
  }
  return made;
}

function valueOf(bucket: number, own: Point[], near: Point[], how: Downsampling): number | undefined {
  const older = near.filter(([time]) => time < bucket);
  if (how.aggregator === Aggregator.NEXT_OLDER) return older.at(-1)?.[1];
  if (how.aggregator === Aggregator.INTERPOLATE) {
    const there = near.find(([time]) => time === bucket);
    if (there !== undefined) return there[1];
    const left = older.at(-1);
    const right = near.find(([time]) => time > bucket);
    if (left === undefined || right === undefined) return undefined;
    return left[1] + (right[1] - left[1]) * ((bucket - left[0]) / (right[0] - left[0]));
  }
  if (own.length === 0) return undefined;
  return ofPoints(own, near.filter(([time]) => time < (own[0] as Point)[0]).at(-1), how);
}

function ofPoints(
  own: Point[],
  neighbour: Point | undefined,
  { aggregator, isRate }: Downsampling,
): number | undefined {
  const values = own.map(([, value]) => value);
  const chain = neighbour === undefined ? own : [neighbour, ...own];
  const [begin, end] = [chain[0] as Point, chain.at(-1) as Point];
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  switch (aggregator) {
    case Aggregator.COUNT:
      return own.length;
    case Aggregator.SUM:
      return values.reduce((a, b) => a + b, 0);
    case Aggregator.MEAN:
      return mean;
    case Aggregator.MIN:
      return Math.min(...values);
    case Aggregator.MAX:
      return Math.max(...values);
    case Aggregator.LAST:
      return values.at(-1);
    case Aggregator.STDDEV:
      return Math.sqrt(values.map((value) => (value - mean) ** 2).reduce((a, b) => a + b, 0) / values.length);
    case Aggregator.P5:
      return percentile(values, 5);
    case Aggregator.P50:
      return percentile(values, 50);
    case Aggregator.P95:
      return percentile(values, 95);
    case Aggregator.P99:
      return percentile(values, 99);
    case Aggregator.DELTA:
      return change(chain, isRate);
    case Aggregator.RATE:
      return begin === end ? undefined : change(chain, isRate) / ((end[0] - begin[0]) / 1000);
    default:
      throw new Error(`no aggregator ${aggregator}`);
  }
}

function change(chain: Point[], isRate: boolean): number {
  const values = chain.map(([, value]) => value);
  if (!isRate) return (values.at(-1) as number) - (values[0] as number);
  return values
    .slice(1)
    .map((value, i) => (value >= (values[i] as number) ? value - (values[i] as number) : value))
    .reduce((a, b) => a + b, 0);
}

function percentile(values: number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = (percent / 100) * (sorted.length - 1);
  const low = sorted[Math.floor(rank)] as number;
  const high = sorted[Math.ceil(rank)] as number;
  return low + (high - low) * (rank - Math.floor(rank));
}
