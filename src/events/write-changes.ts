import { bigintArray, boolArray, byteaArray, int4Array, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { failpoint } from "../failpoint.ts";
import type { Change, KeptOpen } from "./changes.ts";
import type { Occurrence } from "./lifecycle.ts";

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

/** Sends what writes changed occurrences: those that were only seen once more, and all others. */
export function writeOccurrences(tx: Db, tenantId: string, changes: readonly Change[]): PromiseLike<unknown>[] {
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
 * all of the tenant's rows where PostgreSQL takes these for few (design/statements).
 */

/** What no occurrence has: none is made, since those that are seen once more are there, under the locks of their events. */
async function writeSeen(tx: Db, tenantId: string, written: readonly Written[]): Promise<void> {
  const { ids, numbers } = keys(written);
  const rows = await tx<{ made: boolean }[]>`
    insert into occurrences as o (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, instance_count, expires_ms, kept_open_ms)
    select home.tenant_id, event_id, number, 0, 0, false, '', '', '', '{}', 0, last_seen_ms, instance_count, expires_ms, kept_open_ms
    from ${home(tx, tenantId)}, unnest(
      ${ids}::bytea[],
      ${numbers}::int4[],
      ${bigintArray(written.map(({ last }) => last.lastSeenMs))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.instanceCount))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.expiresMs))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.keptOpenMs))}::bigint[]
    ) as seen (event_id, number, last_seen_ms, instance_count, expires_ms, kept_open_ms)
    on conflict (tenant_id, event_id, number) do update set
      last_seen_ms = excluded.last_seen_ms, instance_count = excluded.instance_count, expires_ms = excluded.expires_ms,
      kept_open_ms = excluded.kept_open_ms
    returning o.xmax::text = '0' as made`;
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
      ${bigintArray(written.map(({ last }) => last.instanceCount))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.expiresMs))}::bigint[],
      ${bigintArray(written.map(({ last }) => last.keptOpenMs))}::bigint[]
    ) as made (event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, end_ms, instance_count, expires_ms, kept_open_ms)`;
}

async function writeWhole(tx: Db, tenantId: string, written: readonly Written[]): Promise<void> {
  await tx`
    insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, end_ms, instance_count, expires_ms, kept_open_ms)
    select home.tenant_id, made.* from ${home(tx, tenantId)}, ${columns(tx, written)}
    on conflict (tenant_id, event_id, number) do update set
      severity = excluded.severity, status = excluded.status, acknowledged = excluded.acknowledged, type = excluded.type,
      summary = excluded.summary, body = excluded.body, metadata = excluded.metadata, start_ms = excluded.start_ms,
      last_seen_ms = excluded.last_seen_ms, end_ms = excluded.end_ms, instance_count = excluded.instance_count,
      expires_ms = excluded.expires_ms, kept_open_ms = excluded.kept_open_ms`;
  failpoint("ingest:occurrences-written");
}

/** Sends what writes the instances of changes. */
export function writeInstances(tx: Db, tenantId: string, changes: readonly Change[]): PromiseLike<unknown>[] {
  const rows = changes.flatMap(({ event, after, instance }) =>
    instance === undefined ? [] : [{ eventId: event.id, number: after.number, instance }],
  );
  if (rows.length === 0) return [];
  // In the order of the key, so that those of one page are added together.
  rows.sort((a, b) => Number(a.instance.timeMs - b.instance.timeMs) || Buffer.compare(a.eventId, b.eventId));
  return [
    tx`
      insert into instances (tenant_id, event_id, time_ms, severity, status, number)
      select home.tenant_id, event_id, time_ms, severity, status, number
      from ${home(tx, tenantId)}, unnest(
        ${byteaArray(rows.map(({ eventId }) => eventId))}::bytea[],
        ${bigintArray(rows.map(({ instance }) => instance.timeMs))}::bigint[],
        ${int4Array(rows.map(({ instance }) => instance.severity))}::int4[],
        ${int4Array(rows.map(({ instance }) => instance.status))}::int4[],
        ${int4Array(rows.map(({ number }) => number))}::int4[]
      ) as counted (event_id, time_ms, severity, status, number)`.execute(),
  ];
}

/**
 * Sends what reports change that only keep open occurrences open, under the locks of their events: they are there, so none is
 * made.
 */
export function writeKeptOpen(tx: Db, tenantId: string, kept: readonly KeptOpen[]): void {
  writeKeptTimes(tx, tenantId, kept).catch(() => undefined); // the transaction fails with it
  const shown = kept.flatMap(({ event, number, texts }) => (texts === undefined ? [] : [{ event, number, texts }]));
  if (shown.length > 0) writeTexts(tx, tenantId, shown).catch(() => undefined); // likewise
}

const keptKeys = (kept: readonly Pick<KeptOpen, "event" | "number">[]) => ({
  ids: byteaArray(kept.map(({ event }) => event.id)),
  numbers: int4Array(kept.map(({ number }) => number)),
});

function writeKeptTimes(tx: Db, tenantId: string, kept: readonly KeptOpen[]): Promise<unknown> {
  const { ids, numbers } = keptKeys(kept);
  return tx`
    insert into occurrences as o (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, instance_count, expires_ms, kept_open_ms)
    select home.tenant_id, event_id, number, 0, 0, false, '', '', '', '{}', 0, 0, 0, expires_ms, kept_open_ms
    from ${home(tx, tenantId)}, unnest(
      ${ids}::bytea[],
      ${numbers}::int4[],
      ${bigintArray(kept.map(({ expiresMs }) => expiresMs))}::bigint[],
      ${bigintArray(kept.map(({ keptOpenMs }) => keptOpenMs))}::bigint[]
    ) as kept (event_id, number, expires_ms, kept_open_ms)
    on conflict (tenant_id, event_id, number) do update set
      expires_ms = excluded.expires_ms, kept_open_ms = excluded.kept_open_ms`.execute();
}

type Shown = Required<Pick<KeptOpen, "event" | "number" | "texts">>;

function writeTexts(tx: Db, tenantId: string, shown: readonly Shown[]): Promise<unknown> {
  const { ids, numbers } = keptKeys(shown);
  return tx`
    insert into occurrences as o (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, instance_count)
    select home.tenant_id, event_id, number, 0, 0, false, '', summary, body, metadata, 0, 0, 0
    from ${home(tx, tenantId)}, unnest(
      ${ids}::bytea[],
      ${numbers}::int4[],
      ${textArray(shown.map(({ texts }) => texts.summary))}::text[],
      ${textArray(shown.map(({ texts }) => texts.body))}::text[],
      ${jsonArray(shown.map(({ texts }) => texts.metadata))}::jsonb[]
    ) as shown (event_id, number, summary, body, metadata)
    on conflict (tenant_id, event_id, number) do update set
      summary = excluded.summary, body = excluded.body, metadata = excluded.metadata`.execute();
}
