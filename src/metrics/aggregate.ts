import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import type { Points } from "./codec/chunk.ts";

/** How far outside the range neighbours are looked up, ms: one day. */
export const NEIGHBOUR_MS = 86_400_000;

/** What to make of points. */
export interface Downsampling {
  aggregator: Aggregator;
  periodMs: number;
  /** The range: the first moment, and the first one outside it. */
  startMs: number;
  endMs: number;
  /** Whether a smaller value than the one before means that a counter started again. */
  isRate: boolean;
}

/** Buckets of the period that the range touches. */
export function bucketsIn({ startMs, endMs, periodMs }: Downsampling): number {
  return Math.ceil(endMs / periodMs) - Math.floor(startMs / periodMs);
}

/** One value of the points [from, to), at least one; `before`: there is a point at from - 1, which is their neighbour. */
type Reducer = (points: Points, from: number, to: number, before: boolean, isRate: boolean) => number | undefined;

const at = (values: Float64Array, i: number) => values[i] as number;

/** Sums of values that are multiplied by this stay finite, however many and large they are. */
const small = 2 ** -30;

/** The sum of values times `scale`, with what each addition rounds off (Neumaier). */
function total({ values }: Points, from: number, to: number, scale: number): number {
  let [rounded, lost] = [0, 0];
  for (let i = from; i < to; i++) {
    const value = at(values, i) * scale;
    const next = rounded + value;
    lost += Math.abs(rounded) >= Math.abs(value) ? rounded - next + value : value - next + rounded;
    rounded = next;
  }
  return rounded + lost;
}

function sum(points: Points, from: number, to: number): number {
  const found = total(points, from, to, 1);
  return Number.isFinite(found) ? found : total(points, from, to, small) / small;
}

function mean(points: Points, from: number, to: number): number {
  let found = total(points, from, to, 1) / (to - from);
  if (!Number.isFinite(found)) found = total(points, from, to, small) / (to - from) / small;
  // To divide rounds, too: the mean of equal values is that value.
  return Math.min(Math.max(found, lowest(points, from, to)), highest(points, from, to));
}

function deviation(points: Points, from: number, to: number): number {
  const average = mean(points, from, to) * small;
  let furthest = 0;
  for (let i = from; i < to; i++) furthest = Math.max(furthest, Math.abs(at(points.values, i) * small - average));
  if (furthest === 0) return 0;
  // A power of two, so that squares neither overflow nor vanish, and nothing is rounded off.
  const scale = 2 ** Math.min(1000, -Math.floor(Math.log2(furthest)));
  let squares = 0;
  for (let i = from; i < to; i++) squares += ((at(points.values, i) * small - average) * scale) ** 2;
  return Math.sqrt(squares / (to - from)) / scale / small;
}

/** The value at a share of the way from one to another. */
function between(low: number, high: number, share: number): number {
  const way = high - low;
  return Number.isFinite(way) ? low + way * share : low * (1 - share) + high * share;
}

function percentile(share: number): Reducer {
  return ({ values }, from, to) => {
    const own = values.slice(from, to);
    const rank = share * (own.length - 1);
    const place = Math.floor(rank);
    if (own.length <= sortedMax) own.sort();
    else select(own, place);
    const low = at(own, place);
    if (place === rank) return low;
    let high = at(own, place + 1);
    if (own.length > sortedMax) for (let i = place + 2; i < own.length; i++) if (at(own, i) < high) high = at(own, i);
    return between(low, high, rank - place);
  };
}

/** To sort more takes long; a part of it in order is enough. */
const sortedMax = 10_000;

/** Puts the value at its place that would be there if all were sorted: none before it is greater, none after it smaller. */
function select(values: Float64Array, place: number): void {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    // At random, so that no data make it slow.
    const pivot = at(values, low + Math.floor(Math.random() * (high - low + 1)));
    let left = low;
    let right = high;
    while (left <= right) {
      while (at(values, left) < pivot) left += 1;
      while (at(values, right) > pivot) right -= 1;
      if (left > right) break;
      const value = at(values, left);
      values[left] = at(values, right);
      values[right] = value;
      left += 1;
      right -= 1;
    }
    if (place <= right) high = right;
    else if (place >= left) low = left;
    else return;
  }
}

/** The change from the neighbour, or else from the first point, to the last one. */
function change({ values }: Points, from: number, to: number, before: boolean, isRate: boolean): number {
  const first = before ? from - 1 : from;
  let counted = 0;
  if (isRate) for (let i = first + 1; i < to; i++) if (at(values, i) < at(values, i - 1)) counted += at(values, i - 1);
  return at(values, to - 1) - at(values, first) + counted;
}

function rate(points: Points, from: number, to: number, before: boolean, isRate: boolean): number | undefined {
  const first = before ? from - 1 : from;
  const ms = at(points.times, to - 1) - at(points.times, first);
  return ms === 0 ? undefined : change(points, from, to, before, isRate) / (ms / 1000);
}

function highest({ values }: Points, from: number, to: number): number {
  let found = at(values, from);
  for (let i = from + 1; i < to; i++) if (at(values, i) > found) found = at(values, i);
  return found;
}

function lowest({ values }: Points, from: number, to: number): number {
  let found = at(values, from);
  for (let i = from + 1; i < to; i++) if (at(values, i) < found) found = at(values, i);
  return found;
}

/** The value on the line between the neighbours of a moment; `next` is the first point at or after it. */
function onLine({ times, values }: Points, next: number, timeMs: number): number | undefined {
  if (next < times.length && at(times, next) === timeMs) return at(values, next);
  if (next === 0 || next === times.length) return undefined;
  const share = (timeMs - at(times, next - 1)) / (at(times, next) - at(times, next - 1));
  return between(at(values, next - 1), at(values, next), share);
}

/** A value at the start of a bucket, whether or not it has points; `next` is the first point at or after it. */
type AtStart = (points: Points, next: number, timeMs: number) => number | undefined;

/** How an aggregator makes values. Without either function they are the points themselves. */
interface Aggregation {
  ofBucket?: Reducer;
  atStart?: AtStart;
  /** Looks at points outside of the range, too. */
  neighbours?: true;
}

/** Each has its row: one that is forgotten does not compile. */
const aggregations: Readonly<Record<Aggregator, Aggregation>> = {
  [Aggregator.AGGREGATOR_UNSPECIFIED]: {}, // refused before
  [Aggregator.COUNT]: { ofBucket: (_points, from, to) => to - from },
  [Aggregator.DELTA]: { ofBucket: change, neighbours: true },
  [Aggregator.INTERPOLATE]: { atStart: onLine, neighbours: true },
  [Aggregator.LAST]: { ofBucket: ({ values }, _from, to) => values[to - 1] },
  [Aggregator.MAX]: { ofBucket: highest },
  [Aggregator.MEAN]: { ofBucket: mean },
  [Aggregator.MIN]: { ofBucket: lowest },
  [Aggregator.NEXT_OLDER]: { atStart: ({ values }, next) => values[next - 1], neighbours: true },
  [Aggregator.NONE]: {},
  [Aggregator.P5]: { ofBucket: percentile(0.05) },
  [Aggregator.P50]: { ofBucket: percentile(0.5) },
  [Aggregator.P95]: { ofBucket: percentile(0.95) },
  [Aggregator.P99]: { ofBucket: percentile(0.99) },
  [Aggregator.RATE]: { ofBucket: rate, neighbours: true },
  [Aggregator.STDDEV]: { ofBucket: deviation },
  [Aggregator.SUM]: { ofBucket: sum },
};

const aggregationOf = (aggregator: Aggregator) => aggregations[aggregator] as Aggregation;

/** Whether values of the range may depend on points outside of it, up to `NEIGHBOUR_MS` away. */
export const looksAtNeighbours = (aggregator: Aggregator): boolean => aggregationOf(aggregator).neighbours === true;

/**
 * The values of the buckets, stamped with their starts; with NONE the points of the range. `points` holds those of the range
 * and the neighbours outside it, up to `NEIGHBOUR_MS` away; others have no effect.
 */
export function downsample(points: Points, how: Downsampling): Points {
  const { times } = points;
  const first = firstAtOrAfter(times, how.startMs);
  const end = firstAtOrAfter(times, how.endMs);
  const { ofBucket, atStart } = aggregationOf(how.aggregator);
  if (ofBucket !== undefined) return ofBuckets(points, first, end, how, ofBucket);
  if (atStart !== undefined) return atStarts(points, how, atStart);
  return { times: times.slice(first, end), values: points.values.slice(first, end) };
}

function ofBuckets(points: Points, first: number, end: number, how: Downsampling, reducer: Reducer): Points {
  const { times } = points;
  const { periodMs, isRate } = how;
  const made = room(Math.min(end - first, bucketsIn(how)));
  let count = 0;
  const nearest = how.startMs - NEIGHBOUR_MS;
  for (let from = first; from < end; ) {
    const startMs = Math.floor(at(times, from) / periodMs) * periodMs;
    let to = from + 1;
    while (to < end && at(times, to) < startMs + periodMs) to += 1;
    const before = from > 0 && at(times, from - 1) >= nearest;
    const value = reducer(points, from, to, before, isRate);
    if (value !== undefined) {
      made.times[count] = startMs;
      made.values[count] = value;
      count += 1;
    }
    from = to;
  }
  return cut(made, count);
}

/** INTERPOLATE and NEXT_OLDER: a value at the start of each bucket, whether or not it has points. */
function atStarts(points: Points, how: Downsampling, atStart: AtStart): Points {
  const { periodMs, startMs, endMs } = how;
  const from = firstAtOrAfter(points.times, startMs - NEIGHBOUR_MS);
  const to = firstAtOrAfter(points.times, endMs + NEIGHBOUR_MS + 1);
  const near = { times: points.times.subarray(from, to), values: points.values.subarray(from, to) };
  const made = room(bucketsIn(how));
  let count = 0;
  let next = 0;
  for (let timeMs = Math.floor(startMs / periodMs) * periodMs; timeMs < endMs; timeMs += periodMs) {
    while (next < near.times.length && at(near.times, next) < timeMs) next += 1;
    const value = atStart(near, next, timeMs);
    if (value === undefined) continue;
    made.times[count] = timeMs;
    made.values[count] = value;
    count += 1;
  }
  return cut(made, count);
}

const room = (count: number): Points => ({ times: new Float64Array(count), values: new Float64Array(count) });

const cut = ({ times, values }: Points, count: number): Points => ({
  times: times.subarray(0, count),
  values: values.subarray(0, count),
});

/** The place of the first time that is not before `timeMs`. */
export function firstAtOrAfter(times: Float64Array, timeMs: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (at(times, middle) < timeMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
