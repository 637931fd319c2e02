import type { Fragment } from "postgres";
import type { Checked } from "../clause/checked.ts";
import type { Columns } from "../clause/field.ts";
import { foundBy } from "../clause/to-sql.ts";
import type { Db } from "../db/connect.ts";
import { ID_BYTES, JOINED_ID_BYTES, joinedIds } from "./identity.ts";

/** Where the living entities are that a clause matches: the rows of `from` for which `sql` holds. */
export interface Matching {
  from: Fragment;
  sql: Fragment;
  /** An index finds them, few as a rule. */
  few: boolean;
}

/** The living entities of a tenant that a clause matches. */
export function matchingEntities(db: Db, tenantId: string, clause: Checked, columns: Columns): Matching {
  const { sql, few, ids } = foundBy(db, clause, columns);
  return {
    from: ids === undefined ? db`entities` : entitiesOf(db, joinedIds(ids.reduce(inBoth))),
    sql: db`tenant_id = ${tenantId} and deleted_ms is null and ${sql}`,
    few,
  };
}

function inBoth(some: readonly string[], others: readonly string[]): string[] {
  const among = new Set(others);
  return some.filter((id) => among.has(id));
}

/** The ids of `joinedIds` as rows. As one value they are read in a part of the time that an array of them takes. */
export function idRows(db: Db, joined: Buffer): Fragment {
  return db`select substr(${joined}::bytea, generate_series(1, ${joined.byteLength}::int4, ${JOINED_ID_BYTES}), ${ID_BYTES})`;
}

/** The rows that have these ids: each is looked up once in entities_id. */
function entitiesOf(db: Db, joined: Buffer): Fragment {
  const ids = idRows(db, joined);
  // That one comes twice is rare, and takes PostgreSQL longer to find out.
  const wanted = mayRepeat(joined) ? db`select distinct * from (${ids}) as all_ids` : ids;
  return db`(${wanted}) as wanted (id) join entities using (id)`;
}

/** Whether two of the ids begin alike: of some thousands different ones hardly ever do. */
function mayRepeat(joined: Buffer): boolean {
  const beginnings = new Set<number>();
  for (let at = 0; at < joined.byteLength; at += JOINED_ID_BYTES) beginnings.add(joined.readInt32BE(at));
  return beginnings.size * JOINED_ID_BYTES < joined.byteLength;
}
