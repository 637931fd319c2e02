import { create, toBinary } from "@bufbuild/protobuf";
import {
  Change,
  EventQuerySchema,
  type WatchEventsRequest,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Sql } from "../../db/connect.ts";
import { queryDigest } from "../../db/paging/cursor.ts";
import { exhausted } from "../../errors.ts";
import { watchFilter } from "./filter.ts";
import { changedRows, feedEnd, rowsBehind } from "./follow.ts";
import { cursorPlace, type Place, placeCursor } from "./place.ts";
import type { Told, Watches } from "./watches.ts";

/** How many messages, and bytes of them, wait for a client before its watch is ended. */
const waitingMax = 10_000;
const waitingBytesMax = 16 * 1024 * 1024;
const keepAliveMs = 15_000;

/**
 * The changes of occurrences that match a query, before a change or after it: from now on, or behind the place of a cursor.
 * A message with a cursor alone is sent at once and after 15 s without another. Ends with code 8 when the client reads too
 * slowly, with code 3 when the changes behind the cursor are no longer kept.
 */
export async function* watchEvents(
  sql: Sql,
  watches: Watches,
  tenantId: string,
  request: WatchEventsRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchEventsResponse> {
  const end = watches.begin(tenantId);
  try {
    yield* watchFeed(sql, watches, tenantId, request, signal);
  } finally {
    end();
  }
}

async function* watchFeed(
  sql: Sql,
  watches: Watches,
  tenantId: string,
  request: WatchEventsRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchEventsResponse> {
  const query = request.query ?? create(EventQuerySchema);
  const digest = queryDigest(toBinary(EventQuerySchema, query));
  const filter = watchFilter(tenantId, query);
  const withCursor = (place: Place, message?: WatchEventsResponse): WatchEventsResponse =>
    create(WatchEventsResponseSchema, {
      change: message?.change ?? Change.CHANGE_UNSPECIFIED,
      event: message?.event,
      cursor: placeCursor(tenantId, digest, place),
    });

  let place = request.cursor === "" ? await feedEnd(sql, tenantId) : cursorPlace(tenantId, digest, request.cursor);
  const queue = messageQueue(signal);
  await watches.open(tenantId);
  // Earlier changes are read for this watch alone, at the client's pace, before it follows the feed with the others.
  for (let first = true; ; first = false) {
    const rows = await rowsBehind(sql, tenantId, place);
    if (first) yield withCursor(place);
    for (const row of rows) {
      const { position, createdMs } = row;
      const first = position === place.position ? place.passed : 0;
      for await (const { from, changed } of changedRows(sql, tenantId, row, first)) {
        for (const [i, each] of changed.entries()) {
          const message = each && filter(each);
          if (message !== undefined) yield withCursor({ position, createdMs, passed: from + i + 1 }, message);
        }
      }
      place = { position, createdMs, passed: Number.MAX_SAFE_INTEGER };
    }
    signal.throwIfAborted();
    await watches.open(tenantId);
    if (rows.length === 0 && (watches.toldUpTo(tenantId) ?? 0n) <= place.position) break;
  }
  const leave = watches.add(tenantId, digest.toString("hex"), filter, { after: place.position, ...queue });
  try {
    for (let sentMs = performance.now(); ; ) {
      const told = await queue.next(sentMs + keepAliveMs - performance.now());
      place = told?.place ?? place;
      // Changes that do not match move the cursor, too.
      if (told?.message === undefined && performance.now() - sentMs < keepAliveMs) continue;
      sentMs = performance.now();
      yield withCursor(place, told?.message);
    }
  } finally {
    leave();
  }
}

/** The messages that wait for the client: bounded, in order. */
function messageQueue(signal: AbortSignal) {
  let waiting: Told[] = [];
  let bytes = 0;
  let failure: unknown;
  let wake: (() => void) | undefined;
  const fail = (error: unknown) => {
    failure ??= error;
    waiting = [];
    wake?.();
  };
  return {
    tell(told: Told): void {
      if (failure !== undefined) return;
      // Several places without a message are one.
      const last = waiting.at(-1);
      if (told.message === undefined && last?.message === undefined && last !== undefined) waiting.pop();
      waiting.push(told);
      bytes += told.bytes;
      if (waiting.length > waitingMax || (bytes > waitingBytesMax && waiting.length > 1))
        fail(exhausted("the client takes the changes too slowly; watch again from its last cursor"));
      else wake?.();
    },
    fail,
    /** The next one; undefined when there is none within this time. @throws what the watch ends with */
    async next(withinMs: number): Promise<Told | undefined> {
      if (failure === undefined && waiting.length === 0) {
        signal.throwIfAborted();
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, withinMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
          signal.addEventListener("abort", wake, { once: true });
        });
        if (wake !== undefined) signal.removeEventListener("abort", wake);
        wake = undefined;
      }
      signal.throwIfAborted();
      if (failure !== undefined) throw failure;
      const told = waiting.shift();
      bytes -= told?.bytes ?? 0;
      return told;
    },
  };
}
