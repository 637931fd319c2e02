import type { Db } from "../db/connect.ts";
import { afterCommit } from "../db/transaction.ts";
import type { EntityBounds } from "../entities/bounds.ts";
import type { EntityCache } from "../entities/entity-cache.ts";
import { type PointColumns, writeHead } from "./head.ts";
import { agrees } from "./notes.ts";
import { begin, type PointBatch } from "./point-batch.ts";
import { type NumberedSeries, resolveSeries, type StoredSeries } from "./series.ts";
import { metricOf, type SeriesMemory, seriesOf } from "./series-memory.ts";

/** A batch of points of one tenant as it was stored: columns, one place a point, in the order of arrival. */
export interface StoredPoints extends PointColumns {
  /**
   * Returns the series of the batch whose metrics are wanted, each once, by number. Decodes these from the bytes of their
   * points, and reads no more than the metric of the others: call it only where something looks at points.
   */
  seriesOf(wanted: (metric: string) => boolean): ReadonlyMap<number, NumberedSeries>;
}

/**
 * Is handed each batch inside the transaction that stores it, behind the statements of the points, and may add rows to that
 * transaction. What it throws undoes the batch, and its requests fail; PostgreSQL may ask for the batch again, and a batch
 * that was not acknowledged may be sent again: so the rows must come to the same when it is called twice.
 *
 * `points` holds what was sent, less the points that were refused: late points, several points of one series, and one time
 * twice, in any order of time. A point may be older than points of earlier batches: `times` shows it. `series[i]`, `times[i]`
 * (ms since the epoch) and `values[i]` belong to one point; `seriesOf` finds its series by `series[i]`.
 *
 * It is on the way of every batch: no statement a point, and none for series that it does not watch. What is to happen after
 * the commit goes to `afterCommit`.
 * @param nowMs the database's time when the batch began
 */
export type OnPoints = (tx: Db, tenantId: string, points: StoredPoints, nowMs: number) => Promise<void>;

/** What the storing of points works with. */
export interface MetricStore {
  memory: SeriesMemory;
  /** What this process knows of entities. */
  known: EntityCache;
  /** Series that a tenant may have. */
  seriesMax: number;
  /** How many entities it may have. */
  bounds: EntityBounds;
  onPoints: OnPoints;
  /** Hears, after the commit, of the time of an entity's data. */
  onData(tenantId: string, entityId: Buffer, timeMs: number): void;
  /** Hears, after the commit, that points of a tenant were stored. */
  onStored(tenantId: string): void;
}

/**
 * Stores points in the caller's transaction. May be repeated: the last write of a series and time counts. Series that this
 * process knows are not looked up. Sets `refused` of each batch. @param tx a transaction of `transaction`: what it has
 * confirmed is remembered after its commit
 */
export async function storePoints(
  store: MetricStore,
  tx: Db,
  tenantId: string,
  batches: readonly PointBatch[],
  nowMs: number,
): Promise<void> {
  const named = batches.flatMap(({ series }) => series);
  const resolved = named.length === 0 ? [] : await resolveSeries(tx, tenantId, named, nowMs, store);
  let from = 0;
  const found = batches.map((batch) => {
    const some = resolved.slice(from, from + batch.series.length);
    from += batch.series.length;
    batch.refused = some.map((each) => (typeof each === "string" ? each : undefined));
    const own = some.map((each) => (typeof each === "string" ? undefined : each));
    return { batch, own };
  });
  const columns = columnsOf(found);
  await writeHead(tx, tenantId, columns);
  await store.onPoints(tx, tenantId, withSeries(columns, found), nowMs);
  afterCommit(tx, () => {
    store.onStored(tenantId);
    for (const each of found) remember(store, tenantId, each, nowMs);
  });
}

/** A batch, and the series that were looked up for it; undefined: it may not be made. */
interface Found {
  batch: PointBatch;
  own: readonly (StoredSeries | undefined)[];
}

function columnsOf(found: readonly Found[]): PointColumns {
  const count = found.reduce((sum, { batch }) => sum + batch.numbers.length, 0);
  const series = new Float64Array(count);
  const times = new Float64Array(count);
  const values = new Float64Array(count);
  let stored = 0;
  for (const { batch, own } of found) {
    for (let i = 0; i < batch.numbers.length; i++) {
      const number = (batch.numbers[i] as number) || own[batch.places[i] as number]?.number;
      if (number === undefined) continue;
      series[stored] = number;
      times[stored] = batch.times[i] as number;
      values[stored] = batch.values[i] as number;
      stored += 1;
    }
  }
  return { series: begin(series, stored), times: begin(times, stored), values: begin(values, stored) };
}

function withSeries(columns: PointColumns, found: readonly Found[]): StoredPoints {
  return {
    ...columns,
    seriesOf(wanted) {
      const series = new Map<number, NumberedSeries>();
      for (const { batch, own } of found) {
        for (const each of own) if (each !== undefined && wanted(each.metric)) series.set(each.number, each);
        for (let i = 0; i < batch.numbers.length; i++) {
          const segment = batch.segments[i];
          const entry = batch.places[i] as number;
          const number = batch.numbers[i] as number;
          if (segment === undefined || series.has(number) || !wanted(metricOf(segment, entry))) continue;
          series.set(number, seriesOf(segment, entry));
        }
      }
      return series;
    },
  };
}

const minuteMs = 60_000;

/** After the commit: what it has confirmed, and the liveness of the entities. */
function remember({ memory, onData }: MetricStore, tenantId: string, { batch, own }: Found, nowMs: number) {
  for (let i = 0; i < batch.segments.length; i++) {
    const entity = batch.segments[i]?.entities[batch.places[i] as number];
    const timeMs = batch.times[i] as number;
    if (entity === undefined || timeMs < entity.nextMs) continue;
    entity.nextMs = timeMs - (timeMs % minuteMs) + minuteMs;
    onData(tenantId, entity.id, timeMs);
  }
  for (const [place, { entityId, lastMs }] of batch.series.entries())
    if (own[place] !== undefined) onData(tenantId, entityId, lastMs);
  const known = memory.of(tenantId);
  for (const { place, key, said } of batch.learnt) {
    const series = own[place];
    if (series !== undefined && agrees(series, said)) known.learn(key, series, said, nowMs);
  }
}
