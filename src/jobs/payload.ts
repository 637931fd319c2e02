import type { Db } from "../db/connect.ts";
import type { Lane } from "./queue.ts";

/** What a job that is still to be done holds; undefined: there is none of this id. */
export async function payloadOf(db: Db, { tenantId, kind }: Lane, id: string): Promise<unknown> {
  const [job] = await db<{ payload: unknown }[]>`
    select payload from jobs where tenant_id = ${tenantId} and kind = ${kind} and id = ${id}`;
  return job?.payload;
}
