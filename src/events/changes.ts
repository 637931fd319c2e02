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
  const opened = all.filter(({ first }) => first === undefined);
  const seen = all.filter(({ first, last }) => first !== undefined && onlySeen(first, last));
  const changed = all.filter(({ first, last }) => first !== undefined && !onlySeen(first, last));
  const statements: PromiseLike<unknown>[] = [];
  if (seen.length > 0) statements.push(writeSeen(tx, tenantId, seen));
  if (changed.length > 0) statements.push(writeChanged(tx, tenantId, changed));
  if (opened.length > 0) statements.push(writeOpened(tx, tenantId, opened));
  return statements;
}

const keys = (written: readonly Written[]) => ({
  ids: byteaArray(written.map(({ eventId }) => eventId)),
  numbers: int4Array(written.map(({ last }) => last.number)),
});

function writeSeen(tx: Db, tenantId: string, written: readonly Written[]) {
  const { ids, numbers } = keys(written);
  return tx`
    update occurrences o set last_seen_ms = seen.last_seen_ms, instance_count = seen.instance_count
    from unnest(
      ${ids}::bytea[],
      ${numbers}::int4[],
      ${bigintArray(written.map(({ last }) => last.lastSeenMs))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.instanceCount))}::bigint[]
    ) as seen (event_id, number, last_seen_ms, instance_count)
    where o.tenant_id = ${tenantId} and o.event_id = seen.event_id and o.number = seen.number`.execute();
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

function writeChanged(tx: Db, tenantId: string, written: readonly Written[]) {
  return tx`
    update occurrences o set
      severity = made.severity, status = made.status, acknowledged = made.acknowledged, type = made.type,
      summary = made.summary, body = made.body, metadata = made.metadata, start_ms = made.start_ms,
      last_seen_ms = made.last_seen_ms, end_ms = made.end_ms, instance_count = made.instance_count
    from ${columns(tx, written)}
    where o.tenant_id = ${tenantId} and o.event_id = made.event_id and o.number = made.number`.execute();
}

function writeOpened(tx: Db, tenantId: string, written: readonly Written[]) {
  return tx`
    insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, end_ms, instance_count)
    select ${tenantId}::uuid, made.* from ${columns(tx, written)}`
    .execute()
    .then(() => failpoint("ingest:occurrences-written"));
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
