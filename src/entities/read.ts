import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { type EntityRow, entityColumns } from "./messages.ts";

/** The rows of these entities, deleted ones too, those that there are. */
export async function readEntities(db: Db, tenantId: string, ids: readonly Buffer[]): Promise<EntityRow[]> {
  return await db<EntityRow[]>`
    select ${entityColumns(db)} from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(ids)}::bytea[])`.execute();
}
