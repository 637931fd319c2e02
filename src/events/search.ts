import { create } from "@bufbuild/protobuf";
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
import { type PageRequest, pageRequest } from "../db/paging/page-request.ts";
import { eventField, eventSortKeys } from "./fields.ts";
import { matchingOccurrences } from "./matching.ts";
import { selection, toEvent } from "./messages.ts";
import { type OccurrenceRow, ofEvent, storedColumns } from "./rows.ts";

function sortKeys(db: Db, tenantId: string, query: EventQuery): SortKey[] {
  const sorts = query.sortBy.flatMap(({ byField }) =>
    byField === undefined
      ? []
      : eventSortKeys(db, tenantId, eventField(byField.field), byField.order === SortOrder.DESC),
  );
  return sorts.length > 0 ? sorts : eventSortKeys(db, tenantId, eventField("lastSeen"), true);
}

/** How many matching occurrences of one event an answer shows, and of all its events together. */
const shownMax = 1000;
const pageOccurrencesMax = 10_000;

interface PageRow extends OccurrenceRow {
  key_texts: (string | null)[];
  count: bigint;
  matched: bigint;
  fits: boolean;
}

async function readPage(db: Db, tenantId: string, query: EventQuery, page: PageRequest, signal: AbortSignal) {
  const keys = sortKeys(db, tenantId, query);
  const byOccurrence = [...keys, { expression: db`o.number`, type: "bigint", descending: false } satisfies SortKey];
  // Of the page's query the keys are columns again, and the event's id tells all events apart.
  const columns = keys.map((key, i): SortKey => ({ ...key, expression: db`${db(`key_${i}`)}` }));
  const byEvent = [...columns, { expression: db`event_id`, type: "bytea", descending: false } satisfies SortKey];
  const named = keys
    .map(({ expression }, i) => db`${expression} as ${db(`key_${i}`)}`)
    .reduce((left, right) => db`${left}, ${right}`);
  const after = page.after === undefined ? db`true` : beyond(db, byEvent, page.after, page.backward);
  const total = page.counted === undefined ? db`(select count(*) from first)` : db`${page.counted}::bigint`;
  const matching = matchingOccurrences(db, tenantId, query, "query");
  // Each match is read once, and its event and entity only where a sort key asks for them; those of the page once an event. Of events whose occurrences no
  // longer fit into the page only the first is read, which says that there are more.
  const statement = db<(PageRow & { total: bigint })[]>`
    with matching as (
      select o.event_id, o.number, ${named},
        row_number() over (partition by o.event_id order by ${orderBy(db, byOccurrence)}) as place,
        count(*) over (partition by o.event_id) as matched
      from ${matching.from}
      where ${matching.where}
    ), first as (
      select * from matching where place = 1
    ), cut as (
      select * from first where ${after} order by ${orderBy(db, byEvent, page.backward)} limit ${page.limit + 1}
    ), page as (
      select cut.*, ${ofEvent(db)}, row_number() over (order by ${orderBy(db, byEvent)}) as event_place,
        row_number() over (order by ${orderBy(db, byEvent, page.backward)}) = 1
          or sum(least(matched, ${shownMax})) over (order by ${orderBy(db, byEvent, page.backward)}) <= ${pageOccurrencesMax}
          as fits,
        (select count(*) from occurrences c where c.tenant_id = ${tenantId} and c.event_id = cut.event_id) as count
      from cut
        left join events e on e.tenant_id = ${tenantId} and e.id = cut.event_id
        left join entities n on n.tenant_id = ${tenantId} and n.id = e.entity_id
    )
    select ${storedColumns(db)}, page.event_name, page.entity_id, page.entity_name, page.entity_dimensions,
      page.entity_metadata, totals.total, page.count, page.matched, page.fits,
      ${keyTexts(
        db,
        byEvent.map((key) => ({ ...key, expression: db`page.${key.expression}` })),
      )} as key_texts
    from (select ${total} as total) as totals
      left join page on true
      left join matching m on m.event_id = page.event_id
        and m.place <= case when page.fits then ${shownMax} else 1 end
      left join occurrences o on o.tenant_id = ${tenantId} and o.event_id = m.event_id and o.number = m.number
    order by page.event_place, m.place`;
  const rows = await cancelOn(statement, signal);
  return { total: rows[0]?.total ?? 0n, rows: rows.filter(({ event_id }) => event_id !== null) };
}

function byEvent(rows: readonly PageRow[]): PageRow[][] {
  const groups: PageRow[][] = [];
  for (const row of rows) {
    const last = groups.at(-1);
    if (last?.[0]?.event_id.equals(row.event_id)) last.push(row);
    else groups.push([row]);
  }
  return groups;
}

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
  const { total, rows } = await readPage(db, tenantId, query, page, signal);
  const shown = selection(query.fields.map(({ field }) => field));
  const found = byEvent(rows);
  const fitting = found.filter(([first]) => first?.fits).length;
  const limit = Math.min(page.limit, fitting);
  const { items, info } = await page.cut(found, (group) => (group[0] as PageRow).key_texts, total, limit);
  const results = items.map((group) =>
    toEvent(group[0] as PageRow, group, (group[0] as PageRow).count, tenantId, shown, group[0]?.matched),
  );
  return create(SearchEventsResponseSchema, { results, pageInfo: info });
}
