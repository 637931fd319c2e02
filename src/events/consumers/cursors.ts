import type { Db } from "../../db/connect.ts";
import { home } from "../../db/home-row.ts";
import { changeKey } from "../feed.ts";
import type { OccurrenceKey } from "../occurrences.ts";

/** How far a consumer is. */
export interface Cursor {
  /** The last row of the feed that is consumed. */
  readonly position: bigint;
  /** How many facts of the next row are. */
  readonly done: number;
}

/** A cursor that this transaction holds. */
export interface LockedCursor extends Cursor {
  /** Of the tenant's rules, when it was locked. */
  readonly rulesVersion: bigint;
}

/** A row of the feed with its facts as they are stored. */
export interface FactsRow {
  readonly position: bigint;
  readonly createdMs: number;
  /** Null: no server that keeps facts wrote it, or none for a cursor that it did not see. */
  readonly facts: string | null;
  readonly changes: Buffer;
}

/** One read takes at most this many rows, and about this many characters. */
const rowsMax = 50;
const charsMax = 512 * 1024;

/**
 * Makes the cursor of a consumer at the end of the feed, unless there is one, in the transaction that is about to append the first facts
 * for it. Another one that does so is waited for.
 */
export async function openCursor(tx: Db, tenantId: string, name: string): Promise<void> {
  await tx`
    insert into feed_cursors (tenant_id, name, position, done)
    select home.tenant_id, ${name},
      coalesce((select position from feed where tenant_id = ${tenantId} order by position desc limit 1), 0), 0
    from ${home(tx, tenantId)}
    on conflict do nothing`;
}

/** Locks a cursor until the transaction ends; undefined: there is none, or another transaction holds it. */
export async function lockCursor(tx: Db, tenantId: string, name: string): Promise<LockedCursor | undefined> {
  const [cursor] = await tx<LockedCursor[]>`
    select position, done,
      coalesce((select rules_version from tenant_state where tenant_id = ${tenantId}), 0) as "rulesVersion"
    from feed_cursors where tenant_id = ${tenantId} and name = ${name}
    for no key update skip locked`;
  return cursor;
}

/** Moves a cursor that is locked; returns the end of the feed, as far as it is committed. */
export async function moveCursor(tx: Db, tenantId: string, name: string, { position, done }: Cursor): Promise<bigint> {
  const [end] = await tx<{ position: bigint }[]>`
    with moved as (
      update feed_cursors set position = ${position}, done = ${done}::int4
      where tenant_id = ${tenantId} and name = ${name}
    )
    select position from feed where tenant_id = ${tenantId} order by position desc limit 1`;
  return end?.position ?? position;
}

/**
 * Removes a cursor that is locked, when the rules are still those of this version; the last statements of a transaction. Changes
 * of rules hold the same row of tenant_state: none comes between.
 */
export async function endCursor(tx: Db, tenantId: string, name: string, rulesVersion: bigint): Promise<void> {
  const same = await tx`
    select from tenant_state where tenant_id = ${tenantId} and rules_version = ${rulesVersion} for no key update`;
  if (same.count > 0) await tx`delete from feed_cursors where tenant_id = ${tenantId} and name = ${name}`;
}

/** Whether a consumer has a cursor; where it has one that cannot be locked, another transaction is at work. */
export async function hasCursor(db: Db, tenantId: string, name: string): Promise<boolean> {
  return (await db`select from feed_cursors where tenant_id = ${tenantId} and name = ${name}`).count > 0;
}

/** The rows after a position, at least one if there is any. */
export async function factsAfter(db: Db, tenantId: string, position: bigint): Promise<FactsRow[]> {
  return await db<FactsRow[]>`
    select position, created_ms::float8 as "createdMs", facts, changes
    from (
      select *, sum(coalesce(octet_length(facts), 0)) over (order by position) - coalesce(octet_length(facts), 0) as before
      from (
        select position, created_ms, facts, changes from feed
        where tenant_id = ${tenantId} and position > ${position} order by position limit ${rowsMax}
      ) as next
    ) as near where before < ${charsMax}::int8 order by position`;
}

/** When the oldest row was stored that a consumer has not wholly consumed, ms; Infinity: it has all, or reads nothing. */
export async function behindSinceMs(db: Db, tenantId: string, name: string): Promise<number> {
  const [oldest] = await db<{ ms: number }[]>`
    select created_ms::float8 as ms from feed
    where tenant_id = ${tenantId} and position > (
      select position from feed_cursors where tenant_id = ${tenantId} and name = ${name}
    ) order by position limit 1`;
  return oldest?.ms ?? Infinity;
}

/**
 * When the oldest change of an occurrence was stored that a consumer has not consumed, ms; undefined: there is none. A row of 0.3
 * without changes has the rest of an earlier one's facts, and counts for every occurrence.
 */
export async function changedBehindMs(
  db: Db,
  tenantId: string,
  name: string,
  { eventId, number }: OccurrenceKey,
): Promise<number | undefined> {
  const [oldest] = await db<{ ms: number }[]>`
    select created_ms::float8 as ms from feed
    where tenant_id = ${tenantId} and position > (
      select position from feed_cursors where tenant_id = ${tenantId} and name = ${name}
    ) and (octet_length(changes) = 1 or position(${changeKey(eventId, number)}::bytea in changes) > 0)
    order by position limit 1`;
  return oldest?.ms;
}

/** What a consumer has not consumed. */
export interface Behind {
  readonly facts: number;
  readonly bytes: number;
}

/** How much that is. */
export async function countBehind(db: Db, tenantId: string, name: string): Promise<Behind> {
  const [row] = await db<[Behind]>`
    select coalesce(sum(fact_count), 0)::float8 as facts, coalesce(sum(octet_length(facts)), 0)::float8 as bytes from feed
    where tenant_id = ${tenantId} and position > (
      select position from feed_cursors where tenant_id = ${tenantId} and name = ${name}
    )`;
  return row;
}
