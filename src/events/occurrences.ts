import { byteaArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { planWithoutValues } from "../db/plans.ts";
import { transaction } from "../db/transaction.ts";
import { parseId } from "../entities/identity.ts";
import { type StoredOccurrence, toOccurrence } from "./columns.ts";
import { type EventIdentity, type IdentityColumns, identityColumns, toIdentity } from "./fields.ts";
import type { Occurrence } from "./lifecycle.ts";
import { parseOccurrenceId } from "./occurrence-id.ts";
import { storedColumns } from "./rows.ts";

/** Which occurrence of which event. */
export interface OccurrenceKey {
  eventId: Buffer;
  number: number;
}

/** The occurrence that an item names; undefined when its two ids do not belong together, or cannot be ids. */
export function occurrenceKey(item: { eventId: string; occurrenceId: string }): OccurrenceKey | undefined {
  const eventId = parseId(item.eventId);
  const key = parseOccurrenceId(item.occurrenceId);
  return eventId !== undefined && key?.eventId.equals(eventId) ? key : undefined;
}

/** A text that two keys share only when they are equal. */
export const occurrenceText = ({ eventId, number }: OccurrenceKey) => `${eventId.toString("latin1")}${number}`;

/** Reads those occurrences that there are, by `occurrenceText`, each with its event, by their keys alone; their events are locked by the caller. */
export async function readOccurrences(
  tx: Db,
  tenantId: string,
  keys: readonly OccurrenceKey[],
): Promise<Map<string, { event: EventIdentity; occurrence: Occurrence }>> {
  planWithoutValues(tx);
  const rows = await tx<(StoredOccurrence & IdentityColumns)[]>`
    select o.*, ${identityColumns(tx)}
    from unnest(
        ${byteaArray(keys.map(({ eventId }) => eventId))}::bytea[],
        ${int4Array(keys.map(({ number }) => number))}::int4[]
      ) as asked (event_id, number)
      cross join lateral (
        select ${storedColumns(tx)} from occurrences o
        where o.tenant_id = ${tenantId} and o.event_id = asked.event_id and o.number >= asked.number
          and o.number <= asked.number
        order by o.number limit 1
      ) as o
      cross join lateral (
        select * from events where tenant_id = ${tenantId} and id = asked.event_id limit 1
      ) as e`;
  return new Map(
    rows.map((row) => {
      const event = toIdentity(row.event_id, row);
      return [occurrenceText({ eventId: row.event_id, number: row.number }), { event, occurrence: toOccurrence(row) }];
    }),
  );
}

/** The same without locks. */
export async function findOccurrences(db: Db, tenantId: string, keys: readonly OccurrenceKey[]) {
  return await transaction(db, (tx) => readOccurrences(tx, tenantId, keys));
}

/** How many occurrences these events have, by their keys alone: by the bytes of the ids; one without any is left out. */
export async function countOccurrences(
  db: Db,
  tenantId: string,
  eventIds: readonly Buffer[],
): Promise<Map<string, bigint>> {
  const rows = await transaction(db, async (tx) => {
    planWithoutValues(tx);
    return await tx<{ id: Buffer; count: bigint }[]>`
      select id, count from unnest(${byteaArray(eventIds)}::bytea[]) as asked (id)
        cross join lateral (
          select count(*) as count from occurrences where tenant_id = ${tenantId} and event_id = asked.id
        ) as counted
      where count > 0`;
  });
  return new Map(rows.map(({ id, count }) => [id.toString("latin1"), count]));
}

/** The numbers of those occurrences of events that are not closed, by the bytes of the events' ids; the events are locked. */
export async function openOccurrences(
  tx: Db,
  tenantId: string,
  eventIds: readonly Buffer[],
): Promise<Map<string, Set<number>>> {
  // In the order of the primary key, so that it is the one that finds them (design/statements).
  const rows = await tx<{ id: Buffer; numbers: number[] }[]>`
    select id, numbers from unnest(${byteaArray(eventIds)}::bytea[]) as asked (id)
      cross join lateral (
        select array_agg(number) filter (where end_ms is null) as numbers
        from (
          select number, end_ms from occurrences where tenant_id = ${tenantId} and event_id = asked.id order by number
        ) as o
      ) as open
    where numbers is not null`;
  return new Map(rows.map(({ id, numbers }) => [id.toString("latin1"), new Set(numbers)]));
}
