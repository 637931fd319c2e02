import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Clause, ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { type EventRow, type Order, placeOf, rowKey, rowsOf } from "./list-rows.ts";
import { allOf, type QueryInit } from "./query.ts";

export const events = clientOf(EventQueryService);
export const firstPage = 100;
export const laterPages = 200;
/** Most changed events that the list reads again one by one; beyond that it reads all its rows again. */
export const changedMax = 500;
/** Most events that the server answers in a page. */
const pageMax = 1000;
/** Most values that a clause lists. */
const valuesMax = 10_000;
/** Most new rows that a reread adds to those that are loaded. */
const newMax = 1000;

/** Returns a clause that matches occurrences that began when some of these did; with their events' ids, few others match. */
function startedWith(rows: readonly EventRow[]): Clause {
  const starts = [...new Set(rows.map(({ occurrence }) => Number(occurrence.startTime ?? 0n)))].slice(0, valuesMax);
  const values = starts.map((value) => create(ValueSchema, { kind: { case: "numberValue", value } }));
  return create(ClauseSchema, { oneOf: { field: "startTime", values } });
}

export const eventIdsOf = (rows: readonly EventRow[]) => [...new Set(rows.map(({ event }) => event.id))];

/** Reads the rows of events that a query finds; of more than `changedMax` events the first. */
export async function readEvents(of: QueryInit, eventIds: readonly string[], until: AbortSignal): Promise<EventRow[]> {
  if (eventIds.length === 0) return [];
  const ids = create(ClauseSchema, { withIds: { ids: eventIds.slice(0, changedMax) } });
  const clause = of.clause === undefined ? ids : allOf([of.clause, ids]);
  const asked = { ...of, clause, pageInput: { limit: pageMax } };
  return rowsOf((await events.searchEvents({ query: asked }, { signal: until })).results);
}

/** Reads the current state of rows that no longer match: their actions depend on it. */
export const readDeparted = (fields: QueryInit["fields"], missing: readonly EventRow[], until: AbortSignal) =>
  readEvents({ clause: startedWith(missing), ...(fields && { fields }) }, eventIdsOf(missing), until);

/** Rows that were read from the first one on. */
interface Found {
  readonly rows: Map<string, EventRow>;
  /** Tells whether a row is among `rows` if it still matches; of rows beyond those that were read nothing is known. */
  wasRead(row: EventRow): boolean;
  readonly last: EventRow | undefined;
  /** Cursor of the next page; empty: there is none. */
  readonly cursor: string;
  readonly total: number;
}

/** Reads the pages of a query up to the end of those that are loaded. */
export async function readLoaded(
  query: QueryInit,
  loaded: { readonly rows: readonly EventRow[]; readonly end: EventRow | undefined },
  order: Order,
  until: AbortSignal,
): Promise<Found> {
  const to = loaded.end ?? loaded.rows.toSorted(order).at(-1);
  const found = new Map<string, EventRow>();
  let last: EventRow | undefined;
  /** Tells whether rows up to the end are still to be read; rows of the same order follow each other by their ids. */
  const isBeforeEnd = () =>
    last !== undefined &&
    to !== undefined &&
    (order(last, to) < 0 || (order(last, to) === 0 && !found.has(rowKey(to))));
  let cursor = "";
  let total = 0;
  do {
    const wish = Math.max(cursor === "" ? firstPage : laterPages, loaded.rows.length - found.size);
    const pageInput = { limit: Math.min(pageMax, wish), cursor };
    const { results, pageInfo } = await events.searchEvents({ query: { ...query, pageInput } }, { signal: until });
    for (const row of rowsOf(results)) found.set(rowKey(row), row);
    last = placeOf(results.at(-1), order) ?? last;
    cursor = pageInfo?.hasNext ? pageInfo.endCursor : "";
    total = Number(pageInfo?.totalCount ?? total);
  } while (cursor !== "" && found.size < loaded.rows.length + newMax && isBeforeEnd());
  const end = last;
  const wasRead = (row: EventRow) =>
    found.has(rowKey(row)) || cursor === "" || end === undefined || order(row, end) < 0;
  return { rows: found, wasRead, last, cursor, total };
}
