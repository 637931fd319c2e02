import type { Db } from "../db/connect.ts";
import type { Lane } from "./queue.ts";

/** What a job that is still to be done holds; undefined: there is none of this id. */
export async function payloadOf(db: Db, { tenantId, kind }: Lane, id: string): Promise<unknown> {
  const [job] = await db<{ payload: unknown }[]>`
    select payload from jobs where tenant_id = ${tenantId} and kind = ${kind} and id = ${id}`;
  return job?.payload;
}

/** The first job that is still to be done whose id begins so, by the key; undefined: there is none. */
export async function firstOf(
  db: Db,
  { tenantId, kind }: Lane,
  prefix: string,
): Promise<{ payload: unknown; dueMs: number } | undefined> {
  const [job] = await db<{ payload: unknown; dueMs: number }[]>`
    select payload, due_ms::float8 as "dueMs" from jobs
    where tenant_id = ${tenantId} and kind = ${kind} and id >= ${prefix} and starts_with(id, ${prefix}) order by id limit 1`;
  return job;
}
