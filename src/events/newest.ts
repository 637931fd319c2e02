import type { EventQuery } from "#gen/belfry/events/v1/query_service_pb.ts";
import { SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { keyTextsOf, type SortKey } from "../db/paging/keyset.ts";
import type { PageRequest } from "../db/paging/page-request.ts";
import { planWithoutSorts } from "../db/plans.ts";
import { transaction } from "../db/transaction.ts";
import type { ReadQuery } from "./matching.ts";

/** Tells whether a page is one of the events that were seen last, the latest first: all that comes before its end is met on a walk. */
export function isOfNewest({ sortBy }: EventQuery, { after, backward }: PageRequest): boolean {
  const [first] = sortBy.flatMap(({ byField }) => byField ?? []);
  const isNewest = first === undefined || (first.field === "lastSeen" && first.order === SortOrder.DESC);
  return isNewest && sortBy.length <= 1 && !backward && after?.texts[0] !== null;
}

/** Where a walk begins: after this event. */
interface Place {
  seenMs: bigint;
  eventId: Buffer;
}

function placeOf({ after }: PageRequest): Place | undefined {
  if (after === undefined) return undefined;
  const types: SortKey["type"][] = ["bigint", "bytea"];
  const [seenMs, eventId] = keyTextsOf(after, types) as [string, string];
  return { seenMs: BigInt(seenMs), eventId: Buffer.from(eventId, "hex") };
}

/** The next events of a walk, by their latest matching occurrence that lies beyond its beginning. */
interface Walked {
  eventIds: Buffer[];
  /** Whether there are no more. */
  ended: boolean;
}

/** Walks occurrences_seen backwards until it has met so many events, and through the five minutes in which it met the last one. */
async function walk(
  db: Db,
  tenantId: string,
  query: ReadQuery,
  { after, size }: { after: Place | undefined; size: number },
  signal: AbortSignal,
): Promise<Walked> {
  const occurrencesMax = 2 * size;
  const from =
    after === undefined ? db`true` : db`(seen_slot <= ${after.seenMs} / 300000 and last_seen_ms <= ${after.seenMs})`;
  const place =
    after === undefined
      ? db`true`
      : db`(max(last_seen_ms) < ${after.seenMs} or (max(last_seen_ms) = ${after.seenMs} and event_id > ${after.eventId}))`;
  const occurrences = db`select * from occurrences where tenant_id = ${tenantId} and ${from} order by seen_slot desc`;
  const rows = await transaction(db, async (tx) => {
    await planWithoutSorts(tx);
    const matching = query.ofRows(occurrences);
    const statement = tx<{ event_id: Buffer | null; walked: bigint }[]>`
      with walked as materialized (
        select o.event_id, o.last_seen_ms from ${matching.from} where ${matching.where}
        order by o.seen_slot desc fetch first ${occurrencesMax} rows with ties
      ), found as (
        select event_id, max(last_seen_ms) as seen_ms from walked group by event_id having ${place}
        order by seen_ms desc, event_id limit ${size}
      )
      select event_id, counted.walked
      from (select count(*) as walked from walked) as counted left join found on true
      order by seen_ms desc, event_id`;
    return await cancelOn(statement, signal);
  });
  const eventIds = rows.flatMap(({ event_id }) => event_id ?? []);
  return { eventIds, ended: (rows[0]?.walked ?? 0n) < occurrencesMax && eventIds.length < size };
}

/**
 * Reads a page of the events that were seen last. `read` reads the page among some events; it is asked again with more where those that
 * were met are on earlier pages.
 */
export async function newestPage<T>(
  db: Db,
  tenantId: string,
  query: ReadQuery,
  page: PageRequest,
  signal: AbortSignal,
  read: (eventIds: readonly Buffer[]) => Promise<{ events: number; answer: T }>,
): Promise<T> {
  const after = placeOf(page);
  for (let size = page.limit + 1; ; size *= 8) {
    const { eventIds, ended } = await walk(db, tenantId, query, { after, size }, signal);
    if (eventIds.length <= page.limit && !ended) continue;
    const { events, answer } = await read(eventIds);
    if (events > page.limit || ended) return answer;
  }
}
