import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { effectiveMetrics } from "../dictionary/effective.ts";
import { metadataKeysOf, metadataKeysQuery } from "../entities/field-keys.ts";
import type { FirstEntity } from "../entities/first.ts";
import { seriesId } from "./identity.ts";
import type { SeriesFacts } from "./messages.ts";
import type { MetricPredicate } from "./metric-clause.ts";

/** Series whose facts are looked at together. */
const portion = 1000;

/** A series of an entity. */
export interface Facts extends SeriesFacts {
  number: number;
}

/** Series without what the dictionary says of them. */
export type Named = Omit<Facts, "entry">;

interface SeriesRow {
  /** Null where there is no entity. */
  entityId: Buffer | null;
  /** Null where the entity has no more series. */
  number: number | null;
  metric: string;
  units: string;
  description: string;
  /** As metadataKeysQuery finds them. */
  keys: (string | null)[];
}

/** An entity's series that are asked for. */
interface Wanted extends MetricPredicate {
  /** Begins after this metric. */
  after: string;
  /** How many at most. */
  max: number;
}

/**
 * The first series after a metric, by its name, of the entity that a statement selects; one row where there is none. By
 * series_entity. Beside them those of `bareKeys` that metadata have: the statement is one for a clause that asks for none of them.
 */
async function readSeries(
  db: Db,
  tenantId: string,
  entity: Fragment,
  bareKeys: readonly string[],
  { after, metric }: Pick<Wanted, "after" | "metric">,
  signal: AbortSignal,
): Promise<[SeriesRow, ...SeriesRow[]]> {
  const keys = bareKeys.length === 0 ? db`select ''::text where false` : metadataKeysQuery(db, tenantId, bareKeys);
  const rows = db<[SeriesRow, ...SeriesRow[]]>`
    select entity.id as "entityId", own.*, known.keys from (select array(${keys})) as known (keys)
    left join (${entity}) as entity (id) on true
    left join lateral (
      select number::float8 as number, metric, units, description from series
      where tenant_id = ${tenantId} and entity_id = entity.id and metric > ${after}
        ${metric === undefined ? db`` : db`and metric = ${metric}`}
      order by metric limit ${portion}
    ) as own on true
    order by own.metric`;
  return await cancelOn(rows, signal);
}

/** An entity, and its series as far as they are wanted. */
interface Found {
  entityId: Buffer;
  found: Named[];
}

/** The series of the first entity that a clause matches. Few clauses ask for keys of metadata: only those are asked twice. */
export async function readFirst(
  db: Db,
  tenantId: string,
  { bareKeys, statements }: FirstEntity,
  wanted: Wanted,
  signal: AbortSignal,
): Promise<Found | undefined> {
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
  { matches, asksEntry, metric: only, max }: Wanted,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const found: Named[] = [];
  const entityId = first[0]?.entityId ?? undefined;
  if (entityId === undefined) return undefined;
  for (let rows = first; ; ) {
    const named = rows.flatMap(({ number, metric, units, description }): Named[] =>
      number === null ? [] : [{ number, metric, units, description, id: () => seriesId(tenantId, entityId, metric) }],
    );
    const facts = asksEntry ? await withEntries(db, tenantId, named) : named;
    found.push(...facts.filter((each) => matches({ entry: undefined, ...each })));
    if (rows.length < portion || found.length >= max) return { entityId, found: found.slice(0, max) };
    const next = { after: named.at(-1)?.metric as string, metric: only };
    rows = await readSeries(db, tenantId, db`select ${entityId}::bytea`, [], next, signal);
  }
}

/** The same with what the dictionary says of their metrics. */
export async function withEntries(db: Db, tenantId: string, named: readonly Named[]): Promise<Facts[]> {
  const names = named.map(({ metric }) => metric);
  const entries = await effectiveMetrics(db, tenantId, names);
  return named.map((each) => ({ ...each, entry: entries.get(each.metric) }));
}
