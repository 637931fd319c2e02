import { randomUUIDv7 } from "node:crypto";
import type { Db } from "../../../db/connect.ts";
import { home } from "../../../db/home-row.ts";
import { paced } from "../../../event-loop.ts";
import { enqueue } from "../../../jobs/queue.ts";
import type { RuleChange } from "../rule-changes.ts";
import { snapshots } from "./snapshot.ts";

/** The jobs that match what was stored unmatched: one for each row. */
export const matchKind = "notifications.match";

/** Changes of one transaction, or a portion of them, that wait to be matched. */
export interface Unmatched {
  readonly position: bigint;
  readonly id: string;
  readonly createdMs: number;
  /** How many of the changes have been matched. */
  readonly done: number;
  readonly changes: string;
}

/** What of a tenant waits to be matched. */
export interface Waiting {
  readonly changes: number;
  readonly bytes: number;
}

/** Whether changes of a tenant wait to be matched: then later ones queue after them. Under the lock of an event it sees that event's, too. */
export async function hasUnmatched(tx: Db, tenantId: string): Promise<boolean> {
  const rows = await tx`select from unmatched_changes where tenant_id = ${tenantId} limit 1`.execute();
  return rows.count > 0;
}

/** When the oldest of the tenant's changes that wait to be matched was stored; Infinity when none waits. */
export async function oldestUnmatchedMs(db: Db, tenantId: string): Promise<number> {
  const [oldest] = await db<{ created_ms: bigint }[]>`
    select created_ms from unmatched_changes where tenant_id = ${tenantId} order by position, id limit 1`;
  return oldest === undefined ? Infinity : Number(oldest.created_ms);
}

/**
 * Stores changes to be matched after the commit, in the transaction that makes them, which holds the locks of their events.
 * The order of positions is that of the changes of each event: two transactions with the same position have other events.
 */
export async function storeUnmatched(
  tx: Db,
  tenantId: string,
  changes: readonly RuleChange[],
  nowMs: number,
): Promise<void> {
  const pace = paced(undefined, tenantId);
  const written: PromiseLike<unknown>[] = [];
  for (const { count, text } of snapshots(changes)) {
    written.push(
      tx`
        insert into unmatched_changes (tenant_id, position, id, created_ms, count, done, bytes, changes)
        select home.tenant_id,
          coalesce((select max(position) from unmatched_changes where tenant_id = ${tenantId}), 0) + 1,
          ${randomUUIDv7()}::uuid, ${BigInt(nowMs)}::int8, ${count}::int4, 0, ${Buffer.byteLength(text)}::int4, ${text}::text
        from ${home(tx, tenantId)}`.execute(),
    );
    await pace();
  }
  await Promise.all(written);
  const jobs = written.map(() => ({ payload: {} }));
  await enqueue(tx, { tenantId, kind: matchKind }, jobs, nowMs);
}

/**
 * Locks the oldest changes of a tenant that are not among `taken`; undefined when there are none, or another server has them:
 * later rows wait for it.
 */
export async function lockOldest(
  tx: Db,
  tenantId: string,
  taken: readonly Unmatched[],
): Promise<Unmatched | undefined> {
  const ids = taken.map(({ id }) => id);
  // By the primary key.
  const [row] = await tx<Unmatched[]>`
    select position, id, created_ms::float8 as "createdMs", done, changes from unmatched_changes
    where tenant_id = ${tenantId} and (position, id) = (
      select position, id from unmatched_changes
      where tenant_id = ${tenantId} and not id = any(${`{${ids.join(",")}}`}::uuid[]) order by position, id limit 1
    ) for no key update skip locked`;
  return row;
}

/** Removes changes that have been matched, and notes how far the last of them are. */
export async function endUnmatched(
  tx: Db,
  tenantId: string,
  done: readonly Unmatched[],
  begun: { row: Unmatched; done: number } | undefined,
): Promise<void> {
  for (const { position, id } of done) {
    await tx`delete from unmatched_changes where tenant_id = ${tenantId} and position = ${position} and id = ${id}`;
  }
  if (begun === undefined) return;
  const { position, id } = begun.row;
  await tx`
    update unmatched_changes set done = ${begun.done}::int4
    where tenant_id = ${tenantId} and position = ${position} and id = ${id}`;
}

/** How much of a tenant waits. */
export async function countUnmatched(db: Db, tenantId: string): Promise<Waiting> {
  const [row] = await db<[Waiting]>`
    select coalesce(sum(count - done), 0)::float8 as changes, coalesce(sum(bytes), 0)::float8 as bytes
    from unmatched_changes where tenant_id = ${tenantId}`;
  return row;
}
