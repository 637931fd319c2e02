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
  return {
    from: ids === undefined ? db`entities` : entitiesOf(db, tenantId, parseIds(ids.reduce(inBoth))),
    sql: livingOf(db, tenantId, matching),
    few,
  };
}

/** True for the living entities of a tenant that a condition matches. */
export function livingOf(db: Db, tenantId: string, { sql, apart }: Matching): Fragment {
  const own = apart ? tenantApart(db, tenantId) : db`tenant_id = ${tenantId}`;
  return db`${own} and deleted_ms is null and ${sql}`;
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
