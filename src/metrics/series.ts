import { bigintArray, byteaArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { again } from "../db/transaction.ts";
import { type EntityBounds, tooManyEntities } from "../entities/bounds.ts";
import type { EntityCache } from "../entities/entity-cache.ts";
import { touchEntities } from "../entities/touch.ts";
import { type Labels, labelsKey, labelsOrder, valueBegin } from "./labels.ts";
import { beginMerging } from "./merge.ts";
import { agrees, type Notes, withNotes } from "./notes.ts";
import { beginRetention } from "./retention.ts";

/** A series that points name, and what else they say of it. */
export interface NamedSeries extends Notes {
  entityId: Buffer;
  metric: string;
  dimensions: Record<string, string>;
  /** Absent: none. */
  labels?: Labels | undefined;
  /** Time of the latest of the points, ms. */
  lastMs: number;
}

/** A series that is looked for. Its order is computed once: for 3,000 series of 32 labels, three times took 0.6 s. */
type OrderedSeries = NamedSeries & { order: ReturnType<typeof labelsOrder> };

/** A series that has a number. */
export interface NumberedSeries {
  number: number;
  entityId: Buffer;
  metric: string;
  /** Absent: none. */
  labels?: Labels | undefined;
}

/** A series as it is stored. */
export type StoredSeries = NumberedSeries & Notes;

const keyOf = ({ entityId, metric, labels }: Pick<NamedSeries, "entityId" | "metric" | "labels">) =>
  `${entityId.toString("latin1")}${metric}${labelsKey(labels)}`;

interface SeriesRow extends Notes {
  number: bigint;
  entity_id: Buffer;
  metric: string;
  labels: Labels | null;
  unused: boolean;
}

const keyOfRow = ({ entity_id: entityId, metric, labels }: SeriesRow) =>
  keyOf({ entityId, metric, labels: labels ?? undefined });

const toSeries = ({ number, entity_id, labels, unused, ...rest }: SeriesRow): StoredSeries => ({
  ...rest,
  number: Number(number),
  entityId: entity_id,
  ...(labels !== null && { labels }),
});

/**
 * The series among these that there are, by their keys. By series_identity, one look each: no other index has the order that is
 * asked for, so the planner takes it whatever it knows of the table.
 */
async function readSeries(tx: Db, tenantId: string, named: readonly OrderedSeries[]): Promise<Map<string, SeriesRow>> {
  const rows = await tx<SeriesRow[]>`
    select s.number, s.entity_id, s.metric, s.labels, s.units, s.description, s.instrument, s.unused_ms is not null as unused
    from unnest(
      ${byteaArray(named.map(({ entityId }) => entityId))}::bytea[],
      ${textArray(named.map(({ metric }) => metric))}::text[],
      ${textArray(named.map(({ order }) => order.begin))}::text[],
      ${byteaArray(named.map(({ order }) => order.hash))}::bytea[]
    ) as named (entity_id, metric, labels_begin, labels_hash)
    cross join lateral (
      select number, entity_id, metric, labels, units, description, instrument, unused_ms from series
      where tenant_id = ${tenantId} and entity_id = named.entity_id and metric >= named.metric and metric <= named.metric
        and labels_begin = named.labels_begin and labels_hash = named.labels_hash
      order by metric offset 0
    ) as s`;
  return new Map(rows.map((row) => [keyOfRow(row), row]));
}

/**
 * Clears the marks of series that were thought to be unused, and writes notes that have changed.
 * @throws so that the transaction runs again, when one of them was removed meanwhile
 */
async function refresh(tx: Db, tenantId: string, named: readonly NamedSeries[], found: Map<string, SeriesRow>) {
  const rows = new Set<SeriesRow>();
  for (const each of named) {
    const row = found.get(keyOf(each));
    if (row === undefined) continue;
    if (!row.unused && agrees(row, each)) continue;
    Object.assign(row, withNotes(row, each));
    rows.add(row);
  }
  if (rows.size === 0) return;
  const changed = [...rows].sort((a, b) => Number(a.number - b.number));
  // By the key: they are locked where they are there, so that none is made.
  const { count } = await tx`
    insert into series as stored (tenant_id, number, entity_id, metric, units, description, instrument, created_ms)
    select s.tenant_id, s.number, s.entity_id, s.metric, c.units, c.description, c.instrument, s.created_ms
    from unnest(
      ${bigintArray(changed.map(({ number }) => number))}::bigint[],
      ${textArray(changed.map(({ units }) => units))}::text[],
      ${textArray(changed.map(({ description }) => description))}::text[],
      ${textArray(changed.map(({ instrument }) => instrument))}::text[]
    ) as c (number, units, description, instrument)
    cross join lateral (
      select tenant_id, number, entity_id, metric, created_ms from series
      where tenant_id = ${tenantId} and number >= c.number and number <= c.number
      order by number for no key update offset 0
    ) as s
    on conflict (tenant_id, number) do update
      set unused_ms = null, units = excluded.units, description = excluded.description,
        instrument = excluded.instrument`;
  // Points under a number that has gone would be stored, and never found again.
  if (count < changed.length) throw again("a series that was there is removed");
}

/** How many series and entities a tenant may have, and what this process knows of entities. */
interface Making {
  seriesMax: number;
  bounds: EntityBounds;
  /** The entities of new series are looked for only where it does not know them. */
  known: EntityCache;
}

/**
 * The series of these names, in their order, made where there are none yet, with their entities; for those that would be too
 * many, or whose entities would be, the reason why they are not made. Several of one name may be given.
 */
export async function resolveSeries(
  tx: Db,
  tenantId: string,
  named: readonly NamedSeries[],
  nowMs: number,
  making: Making,
): Promise<(StoredSeries | string)[]> {
  const ordered = named.map((each) => ({ ...each, order: labelsOrder(each.labels) }));
  const found = await readSeries(tx, tenantId, ordered);
  const missing = ordered.filter((each) => !found.has(keyOf(each)));
  const withoutEntity = new Set<string>();
  if (missing.length > 0) {
    const { rows, refused } = await makeSeries(tx, tenantId, missing, nowMs, making);
    for (const [key, row] of rows) found.set(key, row);
    for (const id of refused) withoutEntity.add(id.toString("latin1"));
  }
  await refresh(tx, tenantId, named, found);
  return named.map((each) => {
    const row = found.get(keyOf(each));
    if (row !== undefined) return toSeries(row);
    if (withoutEntity.has(each.entityId.toString("latin1"))) return tooManyEntities(making.bounds);
    return `the tenant has ${making.seriesMax} series, as many as BELFRY_SERIES_MAX allows`;
  });
}

interface Made {
  rows: Map<string, SeriesRow>;
  refused: readonly Buffer[];
}

async function makeSeries(
  tx: Db,
  tenantId: string,
  missing: readonly OrderedSeries[],
  nowMs: number,
  making: Making,
): Promise<Made> {
  // The makers of a tenant's series wait here for each other, so that each sees what the one before has made.
  const first = await tx`
    insert into series_counts (tenant_id, last_number, count) values (${tenantId}, 0, 0)
    on conflict (tenant_id) do nothing`;
  const made = await makeAllowed(tx, tenantId, missing, nowMs, making);
  // Behind the entities: the order of locks (src/events/lock.ts).
  if (first.count > 0) {
    await beginMerging(tx, tenantId, nowMs);
    await beginRetention(tx, tenantId, nowMs);
  }
  return made;
}

/** Makes as many as there may be, of entities that there may be. */
async function makeAllowed(
  tx: Db,
  tenantId: string,
  missing: readonly OrderedSeries[],
  nowMs: number,
  { seriesMax, bounds, known }: Making,
): Promise<Made> {
  const [counts] = await tx<{ count: bigint }[]>`
    select count from series_counts where tenant_id = ${tenantId} for no key update`;
  const found = await readSeries(tx, tenantId, missing);
  const wanted = new Map(missing.map((each) => [keyOf(each), each]));
  for (const key of found.keys()) wanted.delete(key);
  const room = Math.max(0, seriesMax - Number(counts?.count));
  const allowed = [...wanted.values()].slice(0, room);
  if (allowed.length === 0) return { rows: found, refused: [] };
  const refused = await touchEntities(tx, tenantId, sightings(allowed), nowMs, known, bounds);
  const without = new Set(refused.map((id) => id.toString("latin1")));
  const made = allowed.filter(({ entityId }) => !without.has(entityId.toString("latin1")));
  if (made.length === 0) return { rows: found, refused };
  const entityIds = [...new Map(made.map(({ entityId }) => [entityId.toString("latin1"), entityId])).values()];
  const [locked, rows] = await Promise.all([
    lockEntities(tx, tenantId, entityIds.sort(Buffer.compare)),
    insertSeries(tx, tenantId, made, nowMs),
  ]);
  if (locked < entityIds.length) {
    // A database that was restored lacks entities that this process knows; and one that had gone idle may have been removed.
    for (const id of entityIds) known.forgetEntity(id);
    throw again("an entity that was known is not there");
  }
  for (const row of rows) found.set(keyOfRow(row), row);
  return { rows: found, refused };
}

/** Keeps entities from being removed until the transaction ends, in their order; returns how many there are. */
async function lockEntities(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<number> {
  const { count } = await tx`
    select from unnest(${byteaArray(ids)}::bytea[]) as made (id) cross join lateral (
      select from entities where tenant_id = ${tenantId} and id >= made.id and id <= made.id
      order by id for key share offset 0
    ) as kept`;
  return count;
}

async function insertSeries(tx: Db, tenantId: string, made: readonly OrderedSeries[], nowMs: number) {
  const counted = tx`
    update series_counts set last_number = last_number + ${made.length}::int4, count = count + ${made.length}::int4
    where tenant_id = ${tenantId}`.execute();
  counted.catch(() => undefined); // the insert fails with it, where the connection breaks
  // The tenant comes from its row, so that the statement as a whole runs where that is.
  const rows = await tx<SeriesRow[]>`
    insert into series (tenant_id, number, entity_id, metric, labels, labels_begin, labels_hash, units, description, instrument,
      created_ms)
    select counts.tenant_id, counts.last_number - ${made.length}::int4 + place, entity_id, metric, labels, labels_begin,
      labels_hash, units, description, instrument, ${BigInt(nowMs)}::bigint
    from (select tenant_id, last_number from series_counts where tenant_id = ${tenantId}) as counts, unnest(
      ${byteaArray(made.map(({ entityId }) => entityId))}::bytea[],
      ${textArray(made.map(({ metric }) => metric))}::text[],
      ${textArray(made.map(({ labels }) => (labels === undefined ? null : JSON.stringify(labels))))}::jsonb[],
      ${textArray(made.map(({ order }) => order.begin))}::text[],
      ${byteaArray(made.map(({ order }) => order.hash))}::bytea[],
      ${textArray(made.map(({ units }) => units))}::text[],
      ${textArray(made.map(({ description }) => description))}::text[],
      ${textArray(made.map(({ instrument }) => instrument))}::text[]
    ) with ordinality as made (entity_id, metric, labels, labels_begin, labels_hash, units, description, instrument, place)
    returning number, entity_id, metric, labels, units, description, instrument, false as unused`;
  await counted;
  await insertLabels(tx, tenantId, rows);
  return rows;
}

async function insertLabels(tx: Db, tenantId: string, rows: readonly SeriesRow[]): Promise<void> {
  const found = rows.flatMap(({ number, entity_id: entityId, labels }) =>
    Object.entries(labels ?? {}).map(([key, value]) => ({ number, entityId, key, begin: valueBegin(value) })),
  );
  if (found.length === 0) return;
  await tx`
    insert into series_labels (tenant_id, entity_id, key, value_begin, series)
    select counts.tenant_id, entity_id, key, value_begin, series
    from (select tenant_id from series_counts where tenant_id = ${tenantId}) as counts, unnest(
      ${byteaArray(found.map(({ entityId }) => entityId))}::bytea[],
      ${textArray(found.map(({ key }) => key))}::text[],
      ${textArray(found.map(({ begin }) => begin))}::text[],
      ${bigintArray(found.map(({ number }) => number))}::bigint[]
    ) as label (entity_id, key, value_begin, series)`;
}

/** Each entity once, at its latest time. */
function sightings(named: readonly NamedSeries[]) {
  const seen = new Map<string, { id: Buffer; dimensions: Record<string, string>; timestampMs: bigint }>();
  for (const { entityId, dimensions, lastMs } of named) {
    const key = entityId.toString("latin1");
    const known = seen.get(key);
    if (known === undefined) seen.set(key, { id: entityId, dimensions, timestampMs: BigInt(lastMs) });
    else if (BigInt(lastMs) > known.timestampMs) known.timestampMs = BigInt(lastMs);
  }
  return [...seen.values()];
}
