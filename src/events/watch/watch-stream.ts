import { create, toBinary } from "@bufbuild/protobuf";
import {
  EventQuerySchema,
  type WatchEventsRequest,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Sql } from "../../db/connect.ts";
import { queryDigest } from "../../db/paging/cursor.ts";
import { type Pace, paced } from "../../event-loop.ts";
import type { FeedRow } from "../feed.ts";
import { refuseUnused } from "../matching.ts";
import { cursorPlace, type FeedPosition, isBehind, placeCursor } from "./cursor.ts";
import { feedEnd } from "./feed-reader.ts";
import { watchFilter } from "./filter.ts";
import { messageQueue } from "./queue.ts";
import type { WatchedQuery } from "./shared-messages.ts";
import type { WatchHub } from "./watch-hub.ts";

const keepAliveMs = 15_000;

/**
 * The changes of occurrences that match a query, before a change or after it: from now on, or after the place of a cursor.
 * A message with a cursor alone is sent at once and after 15 s without another. Ends with code 8 when the client reads too
 * slowly, with code 3 when the changes after the cursor are no longer kept.
 */
export async function* watchEvents(
  sql: Sql,
  watches: WatchHub,
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
  watches: WatchHub,
  tenantId: string,
  request: WatchEventsRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchEventsResponse> {
  const asked = request.query ?? create(EventQuerySchema);
  refuseUnused(asked, "query", ["sortBy", "pageInput"]);
  const digest = queryDigest(toBinary(EventQuerySchema, asked));
  const query = { tenantId, digest, filter: watchFilter(tenantId, asked) };
  const pace = paced(() => {}, tenantId, { holdsNothing: true });
  const cursorAlone = (place: FeedPosition) =>
    create(WatchEventsResponseSchema, { cursor: placeCursor(tenantId, digest, place) });

  let place = request.cursor === "" ? await feedEnd(sql, tenantId) : cursorPlace(tenantId, digest, request.cursor);
  await watches.open(tenantId);
  const ended = watches.past.begin(tenantId);
  try {
    // Earlier changes are read at the client's pace, before it follows the feed with the others.
    for (let first = true; ; first = false) {
      const rows = await watches.past.rows(tenantId, place);
      if (first) yield cursorAlone(place);
      for (const row of rows) place = yield* earlier(watches, query, row, place, pace, signal);
      signal.throwIfAborted();
      await watches.open(tenantId);
      // Whatever is after the place that was reported to all is reported to this one, too.
      if (!isBehind(watches.toldUpTo(tenantId) ?? place, place)) break;
    }
  } finally {
    ended();
  }
  const queue = messageQueue(signal, watches.heldOf(tenantId));
  const leave = watches.add(query, { after: place, queue });
  try {
    for (let sentMs = performance.now(); ; ) {
      const told = await queue.next(sentMs + keepAliveMs - performance.now(), pace);
      if (told !== undefined) place = told.place;
      else {
        if (performance.now() - sentMs < keepAliveMs) continue;
        // Changes that do not match move the cursor, too.
        const reached = watches.toldUpTo(tenantId) ?? place;
        if (isBehind(reached, place)) place = reached;
      }
      sentMs = performance.now();
      yield told === undefined ? cursorAlone(place) : watches.messageOf(told);
    }
  } finally {
    leave();
    queue.end();
  }
}

/** What a watch is sent of a row that was stored before it follows the feed. Returns the place after it. */
async function* earlier(
  watches: WatchHub,
  query: WatchedQuery,
  row: FeedRow,
  place: FeedPosition,
  pace: Pace,
  signal: AbortSignal,
): AsyncGenerator<WatchEventsResponse, FeedPosition> {
  const { position, createdMs, changes } = row;
  for (let at = position === place.position ? place.passed : 0; at < changes.length; ) {
    const portion = await watches.past.portion(query.tenantId, row, at, signal);
    try {
      for (const told of await portion.told(query, pace)) {
        if (told.place.passed <= at) continue;
        const turn = pace();
        if (turn !== undefined) await turn;
        yield portion.message(told);
      }
    } finally {
      portion.release();
    }
    at = portion.from + portion.count;
  }
  return { position, createdMs, passed: Number.MAX_SAFE_INTEGER };
}
