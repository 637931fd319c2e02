import type { Fragment } from "postgres";
import type { Checked } from "../clause/checked.ts";
import type { Columns } from "../clause/field.ts";
import { type Matching, searchCondition } from "../clause/to-sql.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { tenantApart } from "../db/plans.ts";
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
  return ids === undefined
    ? { ...living, few }
    : { ...living, from: entitiesOf(db, tenantId, parseIds(ids.reduce(inBoth))), few };
}

/**
 * Where the living entities are that a clause matches. What an index answers apart stands behind a fence, with no condition by which another
 * index could be taken: `deleted_ms is null` alone offers a walk along all of a partial one.
 */
export function livingEntities(db: Db, tenantId: string, matching: Matching): Omit<MatchingEntities, "few"> {
  const { sql, apart } = matching;
  if (apart === undefined) return { from: db`entities`, sql: livingWhere(db, tenantId, matching) };
  const from = db`(select * from entities where ${tenantApart(db, tenantId)} and ${apart} offset 0) as entities`;
  return { from, sql: db`deleted_ms is null and ${sql}` };
}

/** True for the living entities of a tenant that a clause matches: for statements that lock them, which need the table itself. */
export function livingWhere(db: Db, tenantId: string, { sql, apart }: Matching): Fragment {
  if (apart === undefined) return db`tenant_id = ${tenantId} and deleted_ms is null and ${sql}`;
  return db`${tenantApart(db, tenantId)} and deleted_ms is null and ${apart} and ${sql}`;
}

function inBoth(some: readonly string[], others: readonly string[]): string[] {
  const among = new Set(others);
  return some.filter((id) => among.has(id));
}

/** The living rows that have these ids, of which none comes twice: each is looked up once in entities_id. */
function entitiesOf(db: Db, tenantId: string, ids: readonly Buffer[]): Fragment {
  return db`unnest(${byteaArray(ids)}::bytea[]) as wanted (wanted_id) cross join lateral (
    select * from entities where tenant_id = ${tenantId} and id = wanted_id and deleted_ms is null limit 1
  ) as entities`;
}
