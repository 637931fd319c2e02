import type { Fragment } from "postgres";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { planWithoutValues } from "../db/plans.ts";
import { addToCount } from "../tenants/usage-counters.ts";
import { lockEvents } from "./lock.ts";
import type { OccurrenceKey } from "./occurrences.ts";

/** Hears of occurrences that are deleted, within the transaction, under the locks of their events. */
export type OnDeleted = (tx: Db, tenantId: string, occurrences: readonly OccurrenceKey[]) => Promise<void>;

/** How many instances one run deletes, and how many occurrences it looks at. */
const portion = 5000;

/**
 * Deletes what is older than the retention of a tenant's events: occurrences closed and last seen before `beforeMs` with their notes,
 * events that have none left, and instances from before then, whose occurrences go on counting them. The newest occurrence
 * of an event stays while others of it do, so that no number is given twice. Returns whether there may be more. May
 * be repeated.
 */
export async function deleteOld(tx: Db, tenantId: string, beforeMs: bigint, onDeleted?: OnDeleted): Promise<boolean> {
  planWithoutValues(tx);
  // By the primary key: where the portion ends. Thousands may have the same time.
  const [end] = await tx<{ time_ms: bigint; event_id: Buffer; severity: number; status: number }[]>`
    select time_ms, event_id, severity, status from instances
    where tenant_id = ${tenantId} and time_ms < ${beforeMs}
    order by time_ms, event_id, severity, status offset ${portion} limit 1`;
  const untilEnd =
    end === undefined
      ? tx`time_ms < ${beforeMs}`
      : tx`(time_ms, event_id, severity, status)
          < (${end.time_ms}::int8, ${end.event_id}::bytea, ${end.severity}::int2, ${end.status}::int2)`;
  const instances = await tx`delete from instances where tenant_id = ${tenantId} and ${untilEnd}`;
  // occurrences_end.
  const old = await tx<OccurrenceKey[]>`
    select event_id as "eventId", number from occurrences
    where tenant_id = ${tenantId} and end_ms < ${beforeMs} and last_seen_ms < ${beforeMs}
    order by end_ms limit ${portion}`;
  const deleted = old.length === 0 ? 0 : await deleteOccurrences(tx, tenantId, beforeMs, old, onDeleted);
  return (end !== undefined && instances.count > 0) || deleted > 0;
}

/** Which of these entities have events, by events_entity. */
export async function entitiesWithEvents(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<Buffer[]> {
  const rows = await tx<{ id: Buffer }[]>`
    select distinct id from unnest(${byteaArray(ids)}::bytea[]) as asked (id)
      cross join lateral (select from events where tenant_id = ${tenantId} and entity_id = asked.id limit 1) as used`;
  return rows.map(({ id }) => id);
}

async function deleteOccurrences(
  tx: Db,
  tenantId: string,
  beforeMs: bigint,
  old: readonly OccurrenceKey[],
  onDeleted?: OnDeleted,
) {
  const events = new Map(old.map(({ eventId }) => [eventId.toString("latin1"), eventId]));
  const locked = await lockEvents(tx, tenantId, [...events.values()]);
  const isOld = (o: Fragment) => tx`${o}.end_ms < ${beforeMs} and ${o}.last_seen_ms < ${beforeMs}`;
  // Of an event whose occurrences are not all in the portion the newest one waits until the others have gone.
  const stays = old.length < portion ? tx`(${isOld(tx`kept`)}) is not true` : tx`kept.number <> o.number`;
  // Of each event those up to the newest of the portion: one table, so that no plan compares every two rows.
  const lastOf: Record<string, number> = {};
  for (const { eventId, number } of old) {
    const id = eventId.toString("hex");
    lastOf[id] = Math.max(lastOf[id] ?? 0, number);
  }
  const ids = byteaArray(locked.ids);
  const goes = tx`
    o.tenant_id = ${tenantId} and o.event_id = any(${ids}::bytea[])
    and o.number <= (${JSON.stringify(lastOf)}::jsonb ->> encode(o.event_id, 'hex'))::int4 and ${isOld(tx`o`)} and (
      exists (
        select from occurrences newer
        where newer.tenant_id = ${tenantId} and newer.event_id = o.event_id and newer.number > o.number
      ) or not exists (
        select from occurrences kept
        where kept.tenant_id = ${tenantId} and kept.event_id = o.event_id and ${stays}
      )
    )`;
  await tx`
    delete from annotations a using occurrences o
    where a.tenant_id = ${tenantId} and a.event_id = any(${ids}::bytea[])
      and a.event_id = o.event_id and a.number = o.number and ${goes}`;
  const occurrences = await tx<{ eventId: Buffer; number: number }[]>`
    delete from occurrences o where ${goes} returning o.event_id as "eventId", o.number`;
  if (occurrences.length > 0) await onDeleted?.(tx, tenantId, occurrences);
  const empty = await tx`
    delete from events e
    where e.tenant_id = ${tenantId} and e.id = any(${ids}::bytea[]) and not exists (
      select from occurrences o where o.tenant_id = ${tenantId} and o.event_id = e.id
    )`;
  await addToCount(tx, tenantId, "events", -empty.count);
  return occurrences.length;
}
