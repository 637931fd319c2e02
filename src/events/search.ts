import { create } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import {
  ActiveCriteria,
  type EventQuery,
  EventQuerySchema,
  type SearchEventsRequest,
  type SearchEventsResponse,
  SearchEventsResponseSchema,
  SortOrder,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import { toSql } from "../clause/to-sql.ts";
import { int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { beyond, keyTexts, orderBy, type SortKey } from "../db/paging/keyset.ts";
import { type PageRequest, pageRequest } from "../db/paging/page-request.ts";
import { invalidField } from "../errors.ts";
import { eventField, eventSortKeys } from "./fields.ts";
import { selection, toEvent } from "./messages.ts";
import { eventResolver } from "./resolver.ts";
import { eventAndEntity, type OccurrenceRow, occurrenceColumns } from "./rows.ts";

/** SQL that holds for the occurrences (o) that a query asks for. `path` is the query's place in the request. */
export function matches(db: Db, tenantId: string, query: EventQuery, path: string): Fragment {
  const { start, end } = query.timeRange ?? {};
  if (start !== undefined && end !== undefined && start >= end) {
    throw invalidField(`${path}.timeRange`, "start must be before end");
  }
  const overlap = query.activeCriteria === ActiveCriteria.BY_OVERLAP;
  const conditions = [db`o.tenant_id = ${tenantId}`];
  if (start !== undefined) {
    conditions.push(overlap ? db`(o.end_ms is null or o.end_ms >= ${start})` : db`o.last_seen_ms >= ${start}`);
  }
  if (end !== undefined) conditions.push(overlap ? db`o.start_ms < ${end}` : db`o.last_seen_ms < ${end}`);
  if (query.severities.length > 0) conditions.push(db`o.severity = any(${int4Array(query.severities)}::int4[])`);
  if (query.statuses.length > 0) conditions.push(db`o.status = any(${int4Array(query.statuses)}::int4[])`);
  if (query.clause !== undefined)
    conditions.push(toSql(db, query.clause, `${path}.clause`, eventResolver(db, tenantId)));
  return conditions.reduce((left, right) => db`${left} and ${right}`);
}

function sortKeys(db: Db, tenantId: string, query: EventQuery): SortKey[] {
  const sorts = query.sortBy.flatMap(({ byField }) =>
    byField === undefined
      ? []
      : eventSortKeys(db, tenantId, eventField(byField.field), byField.order === SortOrder.DESC),
  );
  return sorts.length > 0 ? sorts : eventSortKeys(db, tenantId, eventField("lastSeen"), true);
}

interface PageRow extends OccurrenceRow {
  place: bigint;
  key_texts: (string | null)[];
  count: bigint;
}

interface Totals {
  total: bigint;
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
  // The time range rests on occurrences_last_seen; the total needs every match anyway, so each is read once, and its
  // event and entity only where a sort key asks for them.
  const statement = db<(PageRow & Totals)[]>`
    with matching as (
      select o.event_id, o.number, ${named},
        row_number() over (partition by o.event_id order by ${orderBy(db, byOccurrence)}) as place
      from occurrences o ${eventAndEntity(db)}
      where ${matches(db, tenantId, query, "query")}
    ), first as (
      select * from matching where place = 1
    ), page as (
      select *, row_number() over (order by ${orderBy(db, byEvent)}) as event_place,
        (select count(*) from occurrences c where c.tenant_id = ${tenantId} and c.event_id = cut.event_id) as count
      from (select * from first where ${after} order by ${orderBy(db, byEvent, page.backward)} limit ${page.limit + 1}) as cut
    )
    select ${occurrenceColumns(db)}, m.place, page.event_place, totals.total,
      ${keyTexts(
        db,
        byEvent.map((key) => ({ ...key, expression: db`page.${key.expression}` })),
      )} as key_texts,
      page.count
    from (select count(*) as total from first) as totals
      left join page on true
      left join matching m on m.event_id = page.event_id
      left join occurrences o on o.tenant_id = ${tenantId} and o.event_id = m.event_id and o.number = m.number
      ${eventAndEntity(db)}
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
  const { items, info } = await page.cut(found, (group) => (group[0] as PageRow).key_texts, total);
  const results = items.map((group) =>
    toEvent(group[0] as PageRow, group, (group[0] as PageRow).count, tenantId, shown),
  );
  return create(SearchEventsResponseSchema, { results, pageInfo: info });
}
