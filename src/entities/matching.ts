import type { Fragment } from "postgres";
import type { Checked } from "../clause/checked.ts";
import type { Columns } from "../clause/field.ts";
import { type IndexSource, inAny, type Matching, searchCondition } from "../clause/to-sql.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { tenantApart } from "../db/plans.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { parseIds } from "./identity.ts";

/** Where the living entities are that a clause matches: the rows of `from` for which `sql` holds. */
export interface MatchingEntities {
  from: Fragment;
  sql: Fragment;
  /** An index finds them, few as a rule. */
  few: boolean;
}

/** The living entities of a tenant that a clause matches. */
export function matchingEntities(db: Db, tenantId: string, clause: Checked, columns: Columns): MatchingEntities {
  const { few, ids, ...matching } = searchCondition(db, clause, columns);
  const living = livingEntities(db, tenantId, matching);
  return ids === undefined ? { ...living, few } : { ...living, from: lookedUp(db, tenantId, idList(db, ids)), few };
}

/**
 * Where the living entities are that a clause matches. What indexes answer apart stands behind a fence each, with no condition by which another
 * index could be taken: `deleted_ms is null` alone offers a walk along all of a partial one.
 */
export function livingEntities(db: Db, tenantId: string, matching: Matching): Omit<MatchingEntities, "few"> {
  const { sql, sources } = matching;
  if (sources.length > 1) {
    const found = sources.map(
      (source) => db`(select id from entities where ${foundBy(db, tenantId, source)} offset 0)`,
    );
    const ids = db`(select distinct id from (${sqlJoin(db, found, "union all")}) as any_of) as wanted (wanted_id)`;
    return { from: lookedUp(db, tenantId, ids), sql };
  }
  if (!byTerms(matching)) return { from: db`entities`, sql: livingWhere(db, tenantId, matching) };
  const from = db`(select * from entities where ${tenantApart(db, tenantId)} and ${inAny(db, sources)} offset 0) as entities`;
  return { from, sql: db`deleted_ms is null and ${sql}` };
}

/** True for the living entities of a tenant that a clause matches: for statements that lock them, which need the table itself. */
export function livingWhere(db: Db, tenantId: string, matching: Matching): Fragment {
  const { sql, sources } = matching;
  const owner = byTerms(matching) ? tenantApart(db, tenantId) : db`tenant_id = ${tenantId}`;
  return sources.length === 0
    ? db`${owner} and deleted_ms is null and ${sql}`
    : db`${owner} and deleted_ms is null and ${inAny(db, sources)} and ${sql}`;
}

/** Terms name their tenant. */
const byTerms = ({ sources: [first, other] }: Matching) => first?.index === "entities_terms" && other === undefined;

/** What one index finds; an order that no other index has leads PostgreSQL to that of names. */
function foundBy(db: Db, tenantId: string, { index, sql }: IndexSource): Fragment {
  switch (index) {
    case "entities_terms":
      return db`${tenantApart(db, tenantId)} and ${sql()}`;
    case "ids":
      return db`${tenantApart(db, tenantId)} and deleted_ms is null and ${sql()}`;
    case "entities_name":
      return db`tenant_id = ${tenantId} and deleted_ms is null and ${sql()} order by name`;
    default:
      return db`tenant_id = ${tenantId} and ${sql()}`;
  }
}

const idList = (db: Db, ids: readonly (readonly string[])[]) =>
  db`unnest(${byteaArray(parseIds(ids.reduce(inBoth)))}::bytea[]) as wanted (wanted_id)` as Fragment;

function inBoth(some: readonly string[], others: readonly string[]): string[] {
  const among = new Set(others);
  return some.filter((id) => among.has(id));
}

/** The living rows of ids `wanted_id`, of which none comes twice: each is looked up once in entities_id. */
function lookedUp(db: Db, tenantId: string, wanted: Fragment): Fragment {
  return db`${wanted} cross join lateral (
    select * from entities where tenant_id = ${tenantId} and id = wanted_id and deleted_ms is null limit 1
  ) as entities`;
}
