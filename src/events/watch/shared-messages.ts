import type { WatchEventsResponse } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Pace } from "../../event-loop.ts";
import { type FeedPosition, placeCursor } from "./cursor.ts";
import type { ChangedRow, Filter } from "./filter.ts";

/** Watches of one tenant with the same query: a change is judged and made once for all of them. */
export interface WatchedQuery {
  readonly tenantId: string;
  readonly digest: Uint8Array;
  readonly filter: Filter;
}

/** A change as the watches of a query are sent it. */
export interface Told {
  readonly place: FeedPosition;
  readonly changed: ChangedRow;
  /** How many queues hold it. */
  waiting: number;
  /** The message, as long as it is kept. */
  made: WatchEventsResponse | undefined;
  readonly query: WatchedQuery;
}

/** About how much memory one takes beside its row and its message, bytes. */
export const toldBytes = 200;

/** Messages that are kept for watches of the same query: all forms of a message take a few times as much as its row. */
const madeBytesMax = 8 * 1024 * 1024;

/** Makes the messages of a tenant, and keeps the newest until the last watch of their query has taken them. */
export function messageMaker(): (told: Told) => WatchEventsResponse {
  const kept = new Set<Told>();
  let bytes = 0;
  function forget(told: Told) {
    if (!kept.delete(told)) return;
    told.made = undefined;
    bytes -= told.changed.bytes;
  }
  return (told) => {
    const { made } = told;
    if (made !== undefined) {
      if (told.waiting === 0) forget(told);
      return made;
    }
    const { query, changed, place } = told;
    const message = query.filter.message(changed);
    message.cursor = placeCursor(query.tenantId, query.digest, place);
    if (told.waiting === 0) return message; // no other watch will be sent it
    told.made = message;
    kept.add(told);
    bytes += changed.bytes;
    for (const oldest of kept) {
      if (bytes <= madeBytesMax) break;
      forget(oldest);
    }
    return message;
  };
}

/** What watches of a tenant have not taken yet, each row counted once however many wait for it, bytes. */
export interface Held {
  bytes: number;
}

/** One more queue holds a change. */
export function hold(held: Held, told: Told): void {
  if (told.waiting === 0) {
    held.bytes += toldBytes;
    if (told.changed.waiting === 0) held.bytes += told.changed.bytes;
    told.changed.waiting += 1;
  }
  told.waiting += 1;
}

/** A queue holds it no longer. */
export function release(held: Held, told: Told): void {
  told.waiting -= 1;
  if (told.waiting > 0) return;
  held.bytes -= toldBytes;
  told.changed.waiting -= 1;
  if (told.changed.waiting === 0) held.bytes -= told.changed.bytes;
}

/** The change for the watches of a query; undefined when it does not match. */
export async function changeFor(
  query: WatchedQuery,
  changed: ChangedRow,
  place: FeedPosition,
  pace: Pace,
): Promise<Told | undefined> {
  if (!(await query.filter.matches(changed, pace))) return undefined;
  return { place, changed, waiting: 0, made: undefined, query };
}
