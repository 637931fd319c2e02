import type { Db } from "../../src/db/connect.ts";
import { onCitus } from "./citus.ts";

/** How many statements of this database that look like `text` wait for a lock, on whichever node. */
export async function lockWaits(db: Db, text = "%"): Promise<number> {
  if (onCitus) return (await db`select from citus_lock_waits where blocked_statement like ${text}`).count;
  const rows = await db`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like ${text}`;
  return rows.count;
}
