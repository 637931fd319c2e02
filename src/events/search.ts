import { create, toBinary } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import type { Event } from "#gen/belfry/events/v1/event_pb.ts";
import {
  type EventQuery,
  EventQuerySchema,
  type SearchEventsRequest,
  type SearchEventsResponse,
  SearchEventsResponseSchema,
  SortOrder,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { beyond, keyTexts, orderBy, type SortKey } from "../db/paging/keyset.ts";
import { pageBytesMax } from "../db/paging/page-contents.ts";
import { type PageRequest, pageRequest } from "../db/paging/page-request.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { storedBytes } from "../db/stored-bytes.ts";
import { paced } from "../event-loop.ts";
import { inTurn } from "../rpc/large-responses.ts";
import { fewCandidates, keysOfEvents, someCandidates } from "./candidates.ts";
import { eventColumnNames, eventField, eventSortKeys } from "./fields.ts";
import { type MatchingOccurrences, type ReadQuery, readQuery } from "./matching.ts";
import { selection, toEvent } from "./messages.ts";
import { isOfNewest, newestPage } from "./newest.ts";
import { listColumns, type OccurrenceRow, ofEvent, storedColumns } from "./rows.ts";

function sortKeys(db: Db, tenantId: string, query: EventQuery): SortKey[] {
  const sorts = query.sortBy.flatMap(({ byField }) =>
    byField === undefined
      ? []
      : eventSortKeys(db, tenantId, eventField(byField.field), byField.order === SortOrder.DESC),
  );
  return sorts.length > 0 ? sorts : eventSortKeys(db, tenantId, eventField("lastSeen"), true);
}

/** How many matching occurrences of one event an answer shows, and of all its events together; fewer where they are large. */
const shownMax = 1000;
const pageOccurrencesMax = 10_000;

interface PageRow extends OccurrenceRow {
  key_texts: (string | null)[];
  count: bigint;
  matched: bigint;
  /** Whether the row has its contents; those of the page's first event always have. */
  fits: boolean;
}

type TotalRow = PageRow & { total: bigint };

/** Reads the rows of a page: among few candidates, among those that a walk meets first, or among all. */
async function readPage(
  db: Db,
  tenantId: string,
  query: EventQuery,
  read: ReadQuery,
  page: PageRequest,
  signal: AbortSignal,
) {
  const candidates = read.candidates();
  const few = await fewCandidates(db, tenantId, candidates, signal);
  const rowsOf = (matching: MatchingOccurrences, total: Fragment) =>
    cancelOn(pageStatement(db, tenantId, query, page, matching, total), signal);
  const first = db`(select count(*) from first)` as Fragment;
  if (few !== undefined) return await rowsOf(read.among(few.keys), first);
  const some = await someCandidates(db, tenantId, candidates, signal);
  const all = some === undefined ? read.all() : read.among(some.keys);
  if (!isOfNewest(query, page) || !isShort(query)) return await rowsOf(all, first);
  const { from, where } = all;
  // Of what asks for nothing but events the primary key alone is read.
  const total =
    db`(select count(*) from (select distinct o.event_id from ${from} where ${where}) as matching)` as Fragment;
  return await newestPage(db, tenantId, read, page, signal, async (eventIds) => {
    const rows = await rowsOf(read.among(keysOfEvents(db, tenantId, eventIds)), total);
    return { answer: rows, events: new Set(rows.map(({ event_id }) => event_id.toString("latin1"))).size };
  });
}

/** A query whose clause is written more than once has at most this size. */
const shortBytes = 65_536;
const isShort = (query: EventQuery) => toBinary(EventQuerySchema, query).length <= shortBytes;

function pageStatement(
  db: Db,
  tenantId: string,
  query: EventQuery,
  page: PageRequest,
  matching: MatchingOccurrences,
  counted: Fragment,
) {
  const keys = sortKeys(db, tenantId, query);
  // Each key is made once, and then is a column; the event's id distinguishes all events.
  const names = keys.map((_, i) => db`${db(`key_${i}`)}` as Fragment);
  const columns = keys.map((key, i): SortKey => ({ ...key, expression: names[i] as Fragment }));
  const byOccurrence = [...columns, { expression: db`number`, type: "bigint", descending: false } satisfies SortKey];
  const byEvent = [...columns, { expression: db`event_id`, type: "bytea", descending: false } satisfies SortKey];
  const named = sqlJoin(
    db,
    keys.map(({ expression }, i) => db`${expression} as ${names[i] as Fragment}`),
    ",",
  );
  const after = page.after === undefined ? db`true` : beyond(db, byEvent, page.after, page.backward);
  const total = page.counted === undefined ? counted : db`${page.counted}::bigint`;
  const reading = orderBy(db, byEvent, page.backward);
  const entityBytes = storedBytes(db, [db`n.dimensions`, db`n.metadata`]);
  const ownBytes = storedBytes(db, [db`o.metadata`, db`o.body`]);
  // Each match is read once; its event and entity once for the page, and before only where a sort key asks for them. What the page
  // shows is looked up by its keys: a join could compare each with each (design/statements).
  // Of events whose occurrences no longer fit into the page only the first is read, which says that there are more.
  return db<TotalRow[]>`
    with matching as (
      select event_id, ${sqlJoin(db, names, ",")}, row_number() over of_event as place, count(*) over of_event as matched,
        array_agg(number) over of_event as numbers
      from (select o.event_id, o.number, ${named} from ${matching.from} where ${matching.where}) as found
      window of_event as (
        partition by event_id order by ${orderBy(db, byOccurrence)}
        rows between unbounded preceding and unbounded following
      )
    ), first as (
      select * from matching where place = 1
    ), cut as (
      select * from first where ${after} order by ${reading} limit ${page.limit + 1}
    ), page as (
      select cut.*, ${ofEvent(db)}, ${entityBytes} as entity_bytes, row_number() over (order by ${reading}) as event_place,
        row_number() over (order by ${reading}) = 1
          or sum(least(matched, ${shownMax})) over (order by ${reading}) <= ${pageOccurrencesMax} as few,
        (select count(*) from occurrences c where c.tenant_id = ${tenantId} and c.event_id = cut.event_id) as count
      from cut
        left join lateral (
          select * from events where tenant_id = ${tenantId} and id = cut.event_id limit 1
        ) as e on true
        left join lateral (
          select name, dimensions, metadata from entities where tenant_id = ${tenantId} and id = e.entity_id limit 1
        ) as n on true
    ), sized as (
      select ${storedColumns(db)}, ${eventColumnNames(db)}, page.entity_name, page.event_place, page.few,
        page.count, page.matched, m.place, case when m.place = 1 then page.entity_dimensions end as entity_dimensions,
        case when m.place = 1 then page.entity_metadata end as entity_metadata,
        case when m.place = 1 then ${keyTexts(
          db,
          byEvent.map((key) => ({ ...key, expression: db`page.${key.expression}` })),
        )} end as key_texts,
        sum(page.entity_bytes + ${ownBytes}) over (order by page.event_place, m.place rows unbounded preceding) as bytes
      from page
        cross join unnest(numbers[1:case when few then ${shownMax} else 1 end]) with ordinality as m (number, place)
        left join lateral (
          select * from occurrences
          where tenant_id = ${tenantId} and event_id = page.event_id and number >= m.number and number <= m.number
          order by number limit 1
        ) as o on true
    ), judged as (
      select *, event_place = 1 or (few and bytes <= ${pageBytesMax}) as fits from sized
    )
    select event_id, ${listColumns(db)}, ${eventColumnNames(db)}, o.fits, o.entity_name, o.count, o.matched, o.key_texts,
      case when o.fits then o.body end as body, case when o.fits then o.metadata end as metadata,
      case when o.fits then o.entity_dimensions end as entity_dimensions,
      case when o.fits then o.entity_metadata end as entity_metadata, ${total} as total
    from judged o
    where o.place = 1 or o.bytes <= ${pageBytesMax}
    order by o.event_place, o.place`;
}

/** Whether all that an answer shows of an event fits into the page. */
function isWhole(group: readonly PageRow[]): boolean {
  const last = group.at(-1);
  return last?.fits === true && group.length === Math.min(Number(last.matched), shownMax);
}

/** The rows of each event, in the order in which the page is read. */
function byEvent(rows: readonly PageRow[]): PageRow[][] {
  const groups: PageRow[][] = [];
  for (const row of rows) {
    const last = groups.at(-1);
    const first = last?.[0];
    if (first?.event_id.equals(row.event_id)) {
      // What all occurrences of an event show alike is read once.
      const { entity_dimensions, entity_metadata } = first;
      last?.push({ ...row, entity_dimensions, entity_metadata });
    } else {
      groups.push([row]);
    }
  }
  return groups;
}

/** Larger pages are made one after the other. */
const smallPage = 100;

/** Events with all their matching occurrences, ordered by the first matching occurrence of each; pages are of events. */
export async function searchEvents(
  db: Db,
  tenantId: string,
  request: SearchEventsRequest,
  signal: AbortSignal,
): Promise<SearchEventsResponse> {
  const query = request.query ?? create(EventQuerySchema);
  const page = pageRequest("events", tenantId, query.pageInput, "query.pageInput", EventQuerySchema, {
    ...query,
    pageInput: undefined,
  });
  const make = () => eventPage(db, tenantId, query, page, signal);
  return page.limit > smallPage ? await inTurn(tenantId, signal, make) : await make();
}

async function eventPage(db: Db, tenantId: string, query: EventQuery, page: PageRequest, signal: AbortSignal) {
  const read = readQuery(db, tenantId, query, "query");
  const rows = await readPage(db, tenantId, query, read, page, signal);
  // Without a cursor no row means no match.
  const total = page.counted ?? rows[0]?.total ?? 0n;
  const shown = selection(query.fields.map(({ field }) => field));
  const found = byEvent(rows);
  const fitting = found.filter((group, place) => place === 0 || isWhole(group)).length;
  const limit = Math.min(page.limit, fitting);
  const ordered = page.backward ? found.toReversed() : found;
  const { items, info } = await page.cut(ordered, (group) => (group[0] as PageRow).key_texts, total, limit);
  const pace = paced(() => signal.throwIfAborted(), tenantId);
  const results: Event[] = [];
  for (const group of items) {
    const turn = pace();
    if (turn !== undefined) await turn;
    const [first] = group as [PageRow];
    results.push(toEvent(first, group, first.count, tenantId, shown, first.matched));
  }
  return create(SearchEventsResponseSchema, { results, pageInfo: info, hint: read.hint });
}
