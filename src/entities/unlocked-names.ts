import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { LockedEntity } from "./custom-properties.ts";
import { entityColumns } from "./messages.ts";

/** Reads the living ones of these entities, as clauses read them, without a lock. */
export async function readEntities(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<LockedEntity[]> {
  return await tx<LockedEntity[]>`
    select ${entityColumns(tx)} from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(ids)}::bytea[]) and deleted_ms is null`;
}

/** The next ids, in their order, of the part of a tenant's entities whose ids begin with this byte. By the primary key. */
export async function idsInPart(
  tx: Db,
  tenantId: string,
  part: number,
  { from = Buffer.of(part), max }: { from: Buffer | undefined; max: number },
): Promise<Buffer[]> {
  const end = part === 255 ? tx`true` : tx`id < ${Buffer.of(part + 1)}`;
  const rows = await tx<{ id: Buffer }[]>`
    select id from entities where tenant_id = ${tenantId} and id >= ${from} and ${end} order by id limit ${max}`;
  return rows.map(({ id }) => id);
}
