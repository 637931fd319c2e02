import { bigintArray, boolArray, byteaArray, int4Array, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { afterCommit } from "../db/transaction.ts";
import { failpoint } from "../failpoint.ts";
import { appendFeed, type FeedRow } from "./feed.ts";
import type { Instance, Occurrence, Transition } from "./lifecycle.ts";
import type { LockedEvents } from "./lock.ts";

/** What an event is, whatever happens to it. */
export interface EventIdentity {
  id: Buffer;
  entityId: Buffer;
  name: string;
}

/** One change of an occurrence; `before` is undefined when the change opened it. */
export interface Change extends Transition {
  event: EventIdentity;
  /** The report behind the change; undefined when management or ageing caused it. */
  instance: Instance | undefined;
}

/** Facts that come with changes. */
export interface Telling {
  /** tenant_state.rules_version, read after the transaction began. */
  rulesVersion: bigint;
  nowMs: number;
}

/** Functions that are called with changes. */
export interface ChangeHooks {
  /**
   * Within the transaction, after what the changes write was sent and under the locks of their events. May lock rows below
   * these events, then due_work. Changes stand in the order in which they happened; those of one occurrence follow each
   * other, the `after` of one is the `before` of the next. What it throws fails the transaction. A transaction that runs
   * again calls it again; what it does beyond statements belongs into `afterCommit`.
   */
  onChanges?(tx: Db, tenantId: string, changes: readonly Change[], told: Telling): Promise<void>;
  /** After the commit, and only when this process knows of it: the new row of the tenant's feed. */
  onStored?(tenantId: string, row: FeedRow): void;
}

/** Stores changes of occurrences in the caller's transaction. */
export type StoreChanges = (
  tx: Db,
  locked: Pick<LockedEvents, "tenantId" | "rulesVersion">,
  changes: readonly Change[],
  nowMs: number,
) => Promise<void>;

/**
 * The only function that changes occurrences: for reports, management and ageing. Writes occurrences and their instances,
 * calls the hooks, and appends to the feed. The caller has locked the events (`lockEvents`), and only commits after this.
 * At most 1,000 changes at once; beyond them the caller's next transaction.
 * Statements may still be under way when it resolves: what they fail with fails the transaction.
 */
export function storingChanges({ onChanges, onStored }: ChangeHooks): StoreChanges {
  return async (tx, { tenantId, rulesVersion }, changes, nowMs) => {
    if (changes.length === 0) return;
    const written = [...writeOccurrences(tx, tenantId, changes), ...writeInstances(tx, tenantId, changes)];
    Promise.all(written).catch(() => undefined); // the transaction fails with it
    if (onChanges !== undefined) await onChanges(tx, tenantId, changes, { rulesVersion: rulesVersion ?? 0n, nowMs });
    failpoint("changes:told");
    const row = appendFeed(tx, tenantId, changes, { nowMs, firstOfTenant: rulesVersion === undefined });
    if (onStored !== undefined) afterCommit(tx, () => onStored(tenantId, row()));
  };
}

/** What all changes of one occurrence come to. */
interface Written {
  eventId: Buffer;
  first: Occurrence | undefined;
  last: Occurrence;
}

function summed(changes: readonly Change[]): Written[] {
  const byLast = new Map<Occurrence, Written>();
  for (const { event, before, after } of changes) {
    const earlier = before && byLast.get(before);
    if (earlier === undefined) {
      byLast.set(after, { eventId: event.id, first: before, last: after });
    } else {
      byLast.delete(earlier.last);
      earlier.last = after;
      byLast.set(after, earlier);
    }
  }
  return [...byLast.values()];
}

/** Whether an occurrence was only seen once more, or counted. */
function onlySeen(first: Occurrence, last: Occurrence): boolean {
  return (
    first.severity === last.severity &&
    first.status === last.status &&
    first.acknowledged === last.acknowledged &&
    first.type === last.type &&
    first.summary === last.summary &&
    first.body === last.body &&
    first.metadata === last.metadata &&
    first.startMs === last.startMs &&
    first.endMs === last.endMs
  );
}

function writeOccurrences(tx: Db, tenantId: string, changes: readonly Change[]): PromiseLike<unknown>[] {
  const all = summed(changes);
  const seen = all.filter(({ first, last }) => first !== undefined && onlySeen(first, last));
  const whole = all.filter(({ first, last }) => first === undefined || !onlySeen(first, last));
  const statements: PromiseLike<unknown>[] = [];
  if (seen.length > 0) statements.push(writeSeen(tx, tenantId, seen));
  if (whole.length > 0) statements.push(writeWhole(tx, tenantId, whole));
  return statements;
}

const keys = (written: readonly Written[]) => ({
  ids: byteaArray(written.map(({ eventId }) => eventId)),
  numbers: int4Array(written.map(({ last }) => last.number)),
});

/*
 * Both are inserts, of which the conflicts with what is there are found by the primary key alone: an update would be joined with
 * all of the tenant's rows where PostgreSQL takes these for few (decisions/0060).
 */

/** What no occurrence has: none is made, since those that are seen once more are there, under the locks of their events. */
async function writeSeen(tx: Db, tenantId: string, written: readonly Written[]): Promise<void> {
  const { ids, numbers } = keys(written);
  const rows = await tx<{ made: boolean }[]>`
    insert into occurrences as o (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, instance_count)
    select ${tenantId}::uuid, event_id, number, 0, 0, false, '', '', '', '{}', 0, last_seen_ms, instance_count
    from unnest(
      ${ids}::bytea[],
      ${numbers}::int4[],
      ${bigintArray(written.map(({ last }) => last.lastSeenMs))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.instanceCount))}::bigint[]
    ) as seen (event_id, number, last_seen_ms, instance_count)
    on conflict (tenant_id, event_id, number) do update set
      last_seen_ms = excluded.last_seen_ms, instance_count = excluded.instance_count
    returning o.xmax::text = '0' as made`.execute();
  if (rows.some(({ made }) => made)) throw new Error("an occurrence that was read under its event's lock is not there");
}

/** The columns of whole occurrences, as arrays. */
function columns(tx: Db, written: readonly Written[]) {
  const { ids, numbers } = keys(written);
  return tx`unnest(
      ${ids}::bytea[],
      ${numbers}::int4[],
      ${int4Array(written.map(({ last }) => last.severity))}::int4[],
      ${int4Array(written.map(({ last }) => last.status))}::int4[],
      ${boolArray(written.map(({ last }) => last.acknowledged))}::bool[],
      ${textArray(written.map(({ last }) => last.type))}::text[],
      ${textArray(written.map(({ last }) => last.summary))}::text[],
      ${textArray(written.map(({ last }) => last.body))}::text[],
      ${jsonArray(written.map(({ last }) => last.metadata))}::jsonb[],
      ${bigintArray(written.map(({ last }) => last.startMs))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.lastSeenMs))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.endMs))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.instanceCount))}::bigint[]
    ) as made (event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, end_ms, instance_count)`;
}

async function writeWhole(tx: Db, tenantId: string, written: readonly Written[]): Promise<void> {
  await tx`
    insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, end_ms, instance_count)
    select ${tenantId}::uuid, made.* from ${columns(tx, written)}
    on conflict (tenant_id, event_id, number) do update set
      severity = excluded.severity, status = excluded.status, acknowledged = excluded.acknowledged, type = excluded.type,
      summary = excluded.summary, body = excluded.body, metadata = excluded.metadata, start_ms = excluded.start_ms,
      last_seen_ms = excluded.last_seen_ms, end_ms = excluded.end_ms, instance_count = excluded.instance_count`.execute();
  failpoint("ingest:occurrences-written");
}

function writeInstances(tx: Db, tenantId: string, changes: readonly Change[]): PromiseLike<unknown>[] {
  const rows = changes.flatMap(({ event, after, instance }) =>
    instance === undefined ? [] : [{ eventId: event.id, number: after.number, instance }],
  );
  if (rows.length === 0) return [];
  // In the order of the key, so that those of one page are added together.
  rows.sort((a, b) => Number(a.instance.timeMs - b.instance.timeMs) || Buffer.compare(a.eventId, b.eventId));
  return [
    tx`
      insert into instances (tenant_id, event_id, time_ms, severity, status, number)
      select ${tenantId}::uuid, event_id, time_ms, severity, status, number
      from unnest(
        ${byteaArray(rows.map(({ eventId }) => eventId))}::bytea[],
        ${bigintArray(rows.map(({ instance }) => instance.timeMs))}::bigint[],
        ${int4Array(rows.map(({ instance }) => instance.severity))}::int4[],
        ${int4Array(rows.map(({ instance }) => instance.status))}::int4[],
        ${int4Array(rows.map(({ number }) => number))}::int4[]
      ) as counted (event_id, time_ms, severity, status, number)`.execute(),
  ];
}
