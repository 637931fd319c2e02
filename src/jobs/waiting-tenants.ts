import type { Db } from "../db/connect.ts";
import type { Lane } from "./queue.ts";

/** Whether at least this many jobs of a lane are still to be done. By the key. */
export async function hasWaiting(tx: Db, { tenantId, kind }: Lane, count: number): Promise<boolean> {
  const [row] = await tx<[{ waiting: number }]>`
    select count(*)::int4 as waiting from (
      select from jobs where tenant_id = ${tenantId} and kind = ${kind} limit ${count}
    ) as waiting_jobs`;
  return row.waiting === count;
}
