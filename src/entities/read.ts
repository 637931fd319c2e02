import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { LockedEntity } from "./custom-properties.ts";
import { type EntityRow, entityColumns } from "./messages.ts";

/** The rows of these entities, deleted ones too, those that there are. */
export async function readEntities(db: Db, tenantId: string, ids: readonly Buffer[]): Promise<EntityRow[]> {
  return await db<EntityRow[]>`
    select ${entityColumns(db)} from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(ids)}::bytea[])`.execute();
}

/** Reads the living ones of these entities, as clauses read them, without a lock. */
export async function readLiving(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<LockedEntity[]> {
  return await tx<LockedEntity[]>`
    select ${entityColumns(tx)} from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(ids)}::bytea[]) and deleted_ms is null`;
}

/** Reads the dimensions of entities, deleted ones too, by the bytes of their ids. */
export async function readDimensions(
  db: Db,
  tenantId: string,
  ids: readonly Buffer[],
): Promise<Map<string, Readonly<Record<string, string>>>> {
  if (ids.length === 0) return new Map();
  const rows = await db<{ id: Buffer; dimensions: Record<string, string> }[]>`
    select id, dimensions from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(ids)}::bytea[])`.execute();
  return new Map(rows.map(({ id, dimensions }) => [id.toString("latin1"), dimensions]));
}
