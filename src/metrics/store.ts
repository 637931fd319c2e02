import type { Db } from "../db/connect.ts";
import { afterCommit } from "../db/transaction.ts";
import type { Known } from "../entities/known.ts";
import { type PointColumns, writeHead } from "./head.ts";
import { type NamedSeries, resolveSeries, type StoredSeries } from "./series.ts";
import type { KnownSeries, SeriesMemory } from "./series-memory.ts";

/** Points that have been checked, and the series that they name, each once. */
export interface PointBatch {
  series: NamedSeries[];
  /** Of each point: the place of its series among these. */
  places: Uint32Array;
  /** Whole ms since the epoch. */
  times: Float64Array;
  values: Float64Array;
}

/** A batch of points of one tenant as it was stored: columns, one place a point, in the order of arrival. */
export interface StoredPoints extends PointColumns {
  /** The series that occur in the batch, each once, by number: entity, metric, units. */
  known: ReadonlyMap<number, StoredSeries>;
}

/**
 * Is handed each batch inside the transaction that stores it, behind the statements of the points, and may add rows to that
 * transaction. What it throws undoes the batch, and its requests fail; PostgreSQL may ask for the batch again, and a batch
 * that was not acknowledged may be sent again: so the rows must come to the same when it is called twice.
 *
 * `points` holds what was sent, less the points that were refused: late points, several points of one series, and one time
 * twice, in any order of time. A point may be older than points of earlier batches: `times` tells. `series[i]`, `times[i]`
 * (ms since the epoch) and `values[i]` belong to one point; `known.get(series[i])` is its series.
 *
 * It is on the way of every batch: no statement a point, and none for series that it does not watch. What is to happen after
 * the commit goes to `afterCommit`.
 * @param nowMs the database's time when the batch began
 */
export type OnPoints = (tx: Db, tenantId: string, points: StoredPoints, nowMs: number) => Promise<void>;

/** What the storing of points works with. */
export interface MetricStore {
  memory: SeriesMemory;
  /** What this process knows of entities; absent: nothing. */
  known?: Known | undefined;
  /** Series that a tenant may have. */
  seriesMax: number;
  onPoints?: OnPoints | undefined;
  /** Hears, after the commit, of the time of an entity's data. */
  onData?: ((tenantId: string, entityId: Buffer, timeMs: number) => void) | undefined;
  /** Hears, after the commit, that points of a tenant were stored. */
  onStored?: ((tenantId: string) => void) | undefined;
}

/**
 * Stores points in the caller's transaction. May be repeated: the last write of a series and time counts. Series that this
 * process knows are not looked up. Answers of each series whether it is one more than the tenant may have, so that its points
 * were not stored. @param tx a transaction of `transaction`: what it has confirmed is remembered after its commit
 */
export async function storePoints(
  { memory, known: entities, seriesMax, onPoints, onData, onStored }: MetricStore,
  tx: Db,
  tenantId: string,
  batch: PointBatch,
  nowMs: number,
): Promise<boolean[]> {
  const found: (StoredSeries | KnownSeries | undefined)[] = batch.series.map((named) => {
    const known = memory.find(tenantId, named.key, nowMs);
    return known !== undefined && agrees(known, named) ? known : undefined;
  });
  const asked = found.flatMap((_, i) => (found[i] === undefined ? [i] : []));
  if (asked.length > 0) {
    const named = asked.map((i) => batch.series[i] as NamedSeries);
    const resolved = await resolveSeries(tx, tenantId, named, nowMs, seriesMax, entities);
    for (const [i, place] of asked.entries()) found[place] = resolved[i];
  }
  const columns = columnsOf(batch, found);
  await writeHead(tx, tenantId, columns);
  if (onPoints !== undefined) {
    const known = new Map(found.flatMap((each) => (each === undefined ? [] : [[each.number, each] as const])));
    await onPoints(tx, tenantId, { ...columns, known }, nowMs);
  }
  afterCommit(tx, () => {
    onStored?.(tenantId);
    for (const [place, series] of found.entries()) {
      if (series === undefined) continue;
      const named = batch.series[place] as NamedSeries;
      onData?.(tenantId, series.entityId, named.lastMs);
      if (!("confirmedMs" in series)) memory.remember(tenantId, named.key, { ...series, confirmedMs: nowMs });
    }
  });
  return found.map((each) => each === undefined);
}

/** Whether the points say nothing new of their series. */
function agrees(known: KnownSeries, { units, description }: NamedSeries): boolean {
  return (units === "" || units === known.units) && (description === "" || description === known.description);
}

function columnsOf({ places, times, values }: PointBatch, found: readonly (StoredSeries | undefined)[]): PointColumns {
  const numbers = Float64Array.from(found, (each) => each?.number ?? 0);
  const series = new Float64Array(places.length);
  let refused = 0;
  for (let i = 0; i < places.length; i++) {
    const number = numbers[places[i] as number] as number;
    series[i] = number;
    if (number === 0) refused += 1;
  }
  if (refused === 0) return { series, times, values };
  const stored = (_: number, i: number) => series[i] !== 0;
  return { series: series.filter(stored), times: times.filter(stored), values: values.filter(stored) };
}
