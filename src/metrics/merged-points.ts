import type { Points } from "./codec/chunk.ts";

/**
 * Points in the order of their times, of parts from the oldest to the newest, each in the order of its arrival: of several
 * with the same time the last one counts.
 */
export function mergedPoints(parts: readonly Points[]): Points {
  const [only] = parts;
  const joined = parts.length === 1 ? (only as Points) : join(parts);
  let { times, values } = joined;
  let runs = runsOf(times);
  let owned = parts.length !== 1;
  while (runs.length > 2) {
    // Neighbouring runs in pairs, so that what is later stays later.
    const made: Points = { times: new Float64Array(times.length), values: new Float64Array(times.length) };
    const next = [0];
    for (let i = 0; i + 1 < runs.length; i += 2) {
      const [from, middle, to = middle] = runs.slice(i, i + 3) as [number, number, number?];
      next.push(mergeRuns({ times, values }, from, middle, to, made, next.at(-1) as number));
    }
    const count = next.at(-1) as number;
    times = made.times.subarray(0, count);
    values = made.values.subarray(0, count);
    runs = next;
    owned = true;
  }
  return owned ? { times, values } : joined;
}

function join(parts: readonly Points[]): Points {
  const count = parts.reduce((total, { times }) => total + times.length, 0);
  const joined = { times: new Float64Array(count), values: new Float64Array(count) };
  let at = 0;
  for (const { times, values } of parts) {
    joined.times.set(times, at);
    joined.values.set(values, at);
    at += times.length;
  }
  return joined;
}

/** Where each run of rising times begins, and the end of the last one. */
function runsOf(times: Float64Array): number[] {
  const runs = [0];
  for (let i = 1; i < times.length; i++) if ((times[i] as number) <= (times[i - 1] as number)) runs.push(i);
  if (times.length > 0) runs.push(times.length);
  return runs;
}

/** Merges the runs [from, middle) and [middle, to) of `of` into `into` from `at` on; returns the place after them. */
function mergeRuns({ times, values }: Points, from: number, middle: number, to: number, into: Points, at: number) {
  let left = from;
  let right = middle;
  let place = at;
  while (left < middle || right < to) {
    const leftTime = left < middle ? (times[left] as number) : Infinity;
    const rightTime = right < to ? (times[right] as number) : Infinity;
    if (leftTime === rightTime) left += 1; // the later one counts
    const taken = leftTime < rightTime ? left++ : right++;
    into.times[place] = times[taken] as number;
    into.values[place] = values[taken] as number;
    place += 1;
  }
  return place;
}
