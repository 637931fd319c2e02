import type { Fragment } from "postgres";
import { compareCodePoints } from "../clause/code-point-order.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { tenantUnseen } from "../db/plans.ts";
import { effectiveMetrics } from "../dictionary/entries.ts";
import { metadataKeysOf, metadataKeysQuery } from "../entities/field-keys.ts";
import type { FirstEntity } from "../entities/first-match.ts";
import { seriesId } from "./identity.ts";
import { type Labels, labelsOrder, valueBegin } from "./labels.ts";
import type { SeriesFacts } from "./messages.ts";
import type { MetricPredicate } from "./metric-clause.ts";
import type { Notes } from "./notes.ts";

/** Series whose facts are looked at together. */
const portion = 1000;

/** A series of an entity. */
export interface Facts extends SeriesFacts {
  number: number;
}

/** Series without what the dictionary says of them. */
export type Named = Omit<Facts, "entry">;

interface SeriesRow extends Notes {
  /** Null where there is no entity. */
  entityId: Buffer | null;
  entityName: string | null;
  others: number;
  /** Null where the entity has no more series. */
  number: number | null;
  metric: string;
  labels: Labels | null;
  /** As metadataKeysQuery finds them. */
  keys: (string | null)[];
}

/** A place among the series of an entity: they come by metric, then by their labels. */
export interface SeriesPlace {
  metric: string;
  begin: string;
  hash: Buffer;
}

/** The place of a series. */
export const placeOf = ({ metric, labels }: Pick<SeriesFacts, "metric" | "labels">): SeriesPlace => ({
  metric,
  ...labelsOrder(labels),
});

function comparePlaces(a: SeriesPlace, b: SeriesPlace): number {
  return compareCodePoints(a.metric, b.metric) || compareCodePoints(a.begin, b.begin) || Buffer.compare(a.hash, b.hash);
}

/** An entity's series that are asked for. */
interface Wanted extends MetricPredicate {
  /** Begins after this place; undefined: with the first. */
  after: SeriesPlace | undefined;
  /** How many at most. */
  max: number;
}

/** The series of `entity` after a place, in their order, by series_identity. */
function inOrder(db: Db, tenantId: string, { after, metric }: Pick<Wanted, "after" | "metric">): Fragment {
  const { metric: name, begin, hash } = after ?? { metric: "", begin: "", hash: Buffer.alloc(0) };
  return db`
    select number::float8 as number, metric, labels, labels_begin, labels_hash, units, description, instrument from series
    where ${tenantUnseen(db, tenantId)} and entity_id = entity.id
      and (metric, labels_begin, labels_hash) > (${name}::text, ${begin}::text, ${hash}::bytea)
      ${metric === undefined ? db`` : db`and metric = ${metric}`}
    order by metric, labels_begin, labels_hash limit ${portion}`;
}

/** The series of `entity` with a label, in any order, by the key of series_labels; one more than a portion: there are more. */
function byLabel(db: Db, tenantId: string, { key, value }: NonNullable<Wanted["label"]>): Fragment {
  return db`
    select s.* from (
      select series from series_labels
      where tenant_id = ${tenantId} and entity_id = entity.id and key = ${key} and value_begin = ${valueBegin(value)}
      order by series limit ${portion + 1}
    ) as found
    cross join lateral (
      select number::float8 as number, metric, labels, labels_begin, labels_hash, units, description, instrument from series
      where tenant_id = ${tenantId} and number >= found.series and number <= found.series order by number offset 0
    ) as s`;
}

type Read = Pick<Wanted, "after" | "metric" | "label">;

/**
 * The first series after a place of the entity that a statement selects; one row where there is none. Beside them those of `bareKeys` that metadata have: the statement is one for a clause that asks for none of them.
 */
async function readSeries(
  db: Db,
  tenantId: string,
  entity: Fragment,
  bareKeys: readonly string[],
  read: Read,
  signal: AbortSignal,
): Promise<[SeriesRow, ...SeriesRow[]]> {
  const keys = bareKeys.length === 0 ? db`select ''::text where false` : metadataKeysQuery(db, tenantId, bareKeys);
  const rows = db<[SeriesRow, ...SeriesRow[]]>`
    select entity.id as "entityId", entity.name as "entityName", entity.others, own.*, known.keys from (select array(${keys})) as known (keys)
    left join (${entity}) as entity (id, name, others) on true
    left join lateral (
      ${read.label === undefined ? inOrder(db, tenantId, read) : byLabel(db, tenantId, read.label)}
    ) as own on true
    order by own.metric, own.labels_begin, own.labels_hash`;
  return await cancelOn(rows, signal);
}

/** An entity, and its series as far as they are wanted. */
export interface EntitySeries {
  entityId: Buffer;
  /** Undefined: it has been deleted since the page before. */
  entityName: string | undefined;
  /** How many other entities match. */
  others: number;
  found: Named[];
}

/** The series of the first entity that a clause matches. Few clauses ask for keys of metadata: only those are asked twice. */
export async function readFirst(
  db: Db,
  tenantId: string,
  { bareKeys, statements }: FirstEntity,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<EntitySeries | undefined> {
  let entities = statements(new Set());
  for (let i = 0, asked = bareKeys; i < entities.length; i++) {
    let rows = await readSeries(db, tenantId, entities[i] as Fragment, asked, wanted, signal);
    const metadataKeys = metadataKeysOf(asked, rows[0].keys);
    if (metadataKeys.size > 0) {
      entities = statements(metadataKeys);
      rows = await readSeries(db, tenantId, entities[i] as Fragment, [], wanted, signal);
    }
    asked = [];
    const facts = await readFacts(db, tenantId, rows, wanted, signal);
    if (facts !== undefined) return facts;
  }
  return undefined;
}

/** The series that are wanted, of the first ones and those that come after them. */
async function readFacts(
  db: Db,
  tenantId: string,
  first: readonly SeriesRow[],
  { matches, asksEntry, metric: only, label, after, max }: Wanted,
  signal: AbortSignal,
): Promise<EntitySeries | undefined> {
  const found: Named[] = [];
  const { entityId, entityName, others = 0 } = first[0] ?? {};
  if (!entityId) return undefined;
  const entity = { entityId, entityName: entityName ?? undefined, others };
  let rows = first;
  const isWhole = label !== undefined && rows.length <= portion;
  if (isWhole) rows = rows.filter((row) => row.number !== null && isAfter(row, after));
  else if (label !== undefined)
    rows = await readSeries(db, tenantId, ofEntity(db, entityId), [], { after, metric: only }, signal);
  for (;;) {
    const named = rows.flatMap(({ number, metric, labels: stored, units, description, instrument }): Named[] => {
      const labels = stored ?? undefined;
      const id = () => seriesId(tenantId, entityId, metric, labels);
      return number === null ? [] : [{ number, metric, labels, units, description, instrument, id }];
    });
    const facts = asksEntry ? await withEntries(db, tenantId, named) : named;
    found.push(...facts.filter((each) => matches({ entry: undefined, ...each })));
    if (isWhole || rows.length < portion || found.length >= max) return { ...entity, found: found.slice(0, max) };
    const next = { after: placeOf(named.at(-1) as Named), metric: only };
    rows = await readSeries(db, tenantId, ofEntity(db, entityId), [], next, signal);
  }
}

const ofEntity = (db: Db, entityId: Buffer) => db`select ${entityId}::bytea, null, 0` as Fragment;

const isAfter = ({ metric, labels }: SeriesRow, after: SeriesPlace | undefined) =>
  after === undefined || comparePlaces(placeOf({ metric, labels: labels ?? undefined }), after) > 0;

/** The same with what the dictionary says of their metrics. */
export async function withEntries(db: Db, tenantId: string, named: readonly Named[]): Promise<Facts[]> {
  const names = named.map(({ metric }) => metric);
  const entries = await effectiveMetrics(db, tenantId, names);
  return named.map((each) => ({ ...each, entry: entries.get(each.metric) }));
}
