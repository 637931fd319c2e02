import { paced } from "../event-loop.ts";
import { batchBuilder, type NewSeries, type ReadPoints } from "../metrics/point-batch.ts";
import type { Segment } from "../metrics/series-memory.ts";
import type { MetricStore } from "../metrics/store.ts";
import { batchBytesMax } from "./ingest-queue.ts";
import { brokenTimeRule, type TimeBounds, timesTaken } from "./item.ts";
import { newCharactersMax, newMax, type PointLane, pointsMax } from "./point-lane.ts";
import type { Sender } from "./put.ts";

/** What points are stored with. */
interface Putting {
  store: MetricStore;
  lane: PointLane;
  bounds: TimeBounds;
}

/**
 * Stores points part by part: the next follows the commit of the one before. May be repeated. Returns the places of those that
 * were not stored, and why.
 * @param bytes how large the request was
 * @throws code 8 when the first part would wait too long, 14 when the outcome is unknown; sending again is safe
 */
export async function putReadPoints(
  putting: Putting,
  sender: Sender,
  points: ReadPoints,
  bytes: number,
): Promise<Map<number, string>> {
  const count = points.times.length;
  const each = bytes / Math.max(1, count);
  const size = Math.max(1, Math.min(pointsMax, Math.floor(batchBytesMax / Math.max(1, each))));
  const refused = new Map<number, string>();
  for (let from = 0; from < count; ) {
    const part = await partFrom(putting, sender, points, [from, Math.min(count, from + size)], refused);
    const batch = part.builder.batch();
    if (part.placed.length > 0) {
      const left = await putting.lane.put(sender, batch, each * (part.to - from) + part.newCharacters, from === 0);
      for (const [place, reason] of left) refused.set(part.placed[place] as number, reason);
    }
    from = part.to;
  }
  return refused;
}

/** A batch of points from one place on, to another or until enough of their series are new. */
async function partFrom(
  { store, bounds }: Putting,
  { tenantId, nowMs }: Sender,
  { series, entries, times, values }: ReadPoints,
  [from, max]: [number, number],
  refused: Map<number, string>,
) {
  const now = nowMs();
  const [firstMs, lastMs] = timesTaken(bounds, now);
  const builder = batchBuilder(store.memory.of(tenantId), tenantId, max - from, now);
  const pace = paced(() => {}, tenantId);
  const placed: number[] = [];
  // Values of one data point have one time: a text serves them all.
  let [refusedMs, reason]: [number, string] = [Number.NaN, ""];
  let to = from;
  let newCharacters = 0;
  for (let fresh = 0; to < max && fresh < newMax && newCharacters < newCharactersMax; to++) {
    const wait = pace();
    if (wait !== undefined) await wait;
    const timeMs = times[to] as number;
    const value = values[to] as number;
    if (!(timeMs >= firstMs && timeMs <= lastMs)) {
      const rule = timeMs === refusedMs ? reason : brokenTimeRule(BigInt(timeMs), bounds, Math.floor(now));
      if (rule !== undefined) {
        if (timeMs !== refusedMs) [refusedMs, reason] = [timeMs, `timestamp: ${rule}`];
        refused.set(to, reason);
        continue;
      }
    }
    placed.push(to);
    const own = series[to] as Segment | NewSeries;
    if ("numbers" in own) builder.addKnown(own, entries[to] as number, timeMs, value);
    else if (builder.add(own, timeMs, value)) {
      fresh += 1;
      newCharacters += charactersOf(own);
    }
  }
  return { to, placed, builder, newCharacters };
}

/** Characters that are stored of a new series. */
function charactersOf({ metric, dimensions, labels = {}, units, description }: NewSeries): number {
  let characters = metric.length + units.length + description.length;
  for (const name in dimensions) characters += name.length + (dimensions[name] as string).length;
  for (const name in labels) characters += name.length + (labels[name] as string).length;
  return characters;
}
