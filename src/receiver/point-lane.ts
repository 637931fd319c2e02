import { stepsOwedMs } from "../event-loop.ts";
import { type PointBatch, partOf } from "../metrics/point-batch.ts";
import { type MetricStore, storePoints } from "../metrics/store.ts";
import type { LaneKind } from "./ingest-queue.ts";
import type { Sender } from "./put.ts";

/** The largest batch: a write costs little more for many points than for few. */
export const pointsMax = 16_384;
/** The most points of unknown series in a part: their series and entities are looked up, and made. */
export const newMax = 1000;
/** The most characters of such series: a request may name one text again and again. */
export const newCharactersMax = 2 ** 20;
/** What such a point counts in a batch, which so holds at most 2,048 of them. */
const newWeight = 8;

/** Where batches of points are stored. */
export interface PointLane {
  /** Stores a batch; returns the places of the points that were not stored, and why. */
  put(sender: Sender, batch: PointBatch, bytes: number, first: boolean): Promise<[place: number, reason: string][]>;
}

/** The lane of points: `store` is where they go. */
export function pointLane(store: MetricStore, nowMs: () => number): PointLane {
  const kind: LaneKind<PointBatch> = {
    name: "metrics",
    sizeMax: pointsMax,
    // Points are compared with the expressions of triggers in the transaction that stores them.
    owedMs: stepsOwedMs,
    async store(tx, tenantId, batches) {
      await storePoints(store, tx, tenantId, batches, nowMs());
      return undefined;
    },
  };

  async function put(
    sender: Sender,
    batch: PointBatch,
    bytes: number,
    first: boolean,
  ): Promise<[place: number, reason: string][]> {
    const { lanes, tenantId, abandoned } = sender;
    const count = batch.numbers.length;
    const size = count + (newWeight - 1) * batch.series.length;
    const reason = (await lanes.put(kind, tenantId, { items: [batch], count, size, bytes, abandoned }, first)).get(0);
    if (reason === undefined) {
      const refused: [number, string][] = [];
      for (let i = 0; i < count; i++) {
        const why = batch.numbers[i] === 0 ? batch.refused[batch.places[i] as number] : undefined;
        if (why !== undefined) refused.push([i, why]);
      }
      return refused;
    }
    if (count === 1) return [[0, reason]];
    // Something in it cannot be stored: in halves, in their order, until it stands alone.
    const middle = count >> 1;
    const left = await put(sender, partOf(batch, 0, middle), bytes / 2, false);
    const right = await put(sender, partOf(batch, middle, count), bytes / 2, false);
    return [...left, ...right.map(([place, why]): [number, string] => [place + middle, why])];
  }

  return { put };
}
