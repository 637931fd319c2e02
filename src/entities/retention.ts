import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { afterCommit } from "../db/transaction.ts";
import { addToCount } from "../tenants/usage-counters.ts";
import type { EntityCache } from "./entity-cache.ts";

/** Which of these entities, whose rows are locked, something else of the tenant still needs. */
export type InUse = (tx: Db, tenantId: string, ids: readonly Buffer[]) => Promise<readonly Buffer[]>;

/** What becomes of entities of which no data come. */
export interface EntityRetention {
  /** After how long without data one is deleted, s; 0: never. */
  idleSec: number;
  /** How long a deleted one is kept at least, s. */
  deletedSec: number;
  inUse: readonly InUse[];
  known: EntityCache;
}

/** Entities that one run looks at. */
const portion = 1000;

const keyOf = (id: Buffer) => id.toString("latin1");

/**
 * Deletes entities that became idle, and removes deleted ones: each when it has neither series nor events any more; one that
 * has them is only marked, and any data bring it back. Looks at a portion of the tenant's entities, in the order of their
 * ids; returns the last one, undefined at the end. May be repeated.
 */
export async function retainEntities(
  tx: Db,
  tenantId: string,
  after: Buffer,
  { idleSec, deletedSec, inUse, known }: EntityRetention,
  nowMs: number,
): Promise<Buffer | undefined> {
  const idleMs = BigInt(idleSec === 0 ? 0 : Math.floor(nowMs) - idleSec * 1000);
  const deletedMs = BigInt(Math.floor(nowMs) - deletedSec * 1000);
  const isOver = tx`case
    when deleted_ms is null then greatest(liveness_ms, created_ms) < ${idleMs}
    else idle is true or deleted_ms < ${deletedMs} end`;
  // By the primary key.
  const rows = await tx<{ id: Buffer; over: boolean }[]>`
    select id, ${isOver} as over from entities
    where tenant_id = ${tenantId} and id > ${after} order by id limit ${portion}`;
  const over = rows.filter((row) => row.over).map(({ id }) => id);
  if (over.length > 0) {
    // Judged again under the lock, which series and events of an entity cannot be made beside.
    const locked = await tx<{ id: Buffer }[]>`
      select id from entities
      where tenant_id = ${tenantId} and id = any(${byteaArray(over)}::bytea[]) and ${isOver}
      order by id for update`;
    const ids = locked.map(({ id }) => id);
    const used = new Set<string>();
    for (const find of inUse) for (const id of await find(tx, tenantId, ids)) used.add(keyOf(id));
    const kept = ids.filter((id) => used.has(keyOf(id)));
    await markIdle(tx, tenantId, kept, nowMs);
    const gone = ids.filter((id) => !used.has(keyOf(id)));
    await remove(tx, tenantId, gone);
    afterCommit(tx, () => {
      for (const id of gone) known.forgetEntity(id);
    });
  }
  return rows.length < portion ? undefined : rows.at(-1)?.id;
}

/** Their next model counts as a change: updaters that are enabled meanwhile do not find them. */
async function markIdle(tx: Db, tenantId: string, ids: readonly Buffer[], nowMs: number): Promise<void> {
  if (ids.length === 0) return;
  await tx`
    update entities set deleted_ms = liveness_ms, idle = true, content_hash = null, updated_ms = ${BigInt(Math.floor(nowMs))}
    where tenant_id = ${tenantId} and id = any(${byteaArray(ids)}::bytea[]) and deleted_ms is null`;
}

async function remove(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<void> {
  if (ids.length === 0) return;
  const { count } = await tx`
    delete from entities where tenant_id = ${tenantId} and id = any(${byteaArray(ids)}::bytea[])`;
  await addToCount(tx, tenantId, "entities", -count);
}
