import type { Fragment } from "postgres";
import type { Checked } from "../clause/checked.ts";
import type { Columns } from "../clause/field.ts";
import { searchCondition } from "../clause/to-sql.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
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
  const { sql, few, ids } = searchCondition(db, clause, columns);
  return {
    from: ids === undefined ? db`entities` : entitiesOf(db, tenantId, parseIds(ids.reduce(inBoth))),
    sql: db`tenant_id = ${tenantId} and deleted_ms is null and ${sql}`,
    few,
  };
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
