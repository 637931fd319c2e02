import { create, toBinary } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import {
  type EventGroup,
  EventGroupSchema,
  type EventQuery,
  EventQuerySchema,
  type GroupEventsRequest,
  GroupEventsRequestSchema,
  type GroupEventsResponse,
  GroupEventsResponseSchema,
  GroupEventsRequest_Sort as Sort,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import { byteaArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { beyond, keyTexts, orderBy, type SortKey } from "../db/paging/keyset.ts";
import { countedPage } from "../db/paging/token-page.ts";
import { planWithoutValues } from "../db/plans.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { transaction } from "../db/transaction.ts";
import { displayName } from "../entities/display-name.ts";
import { idText } from "../entities/identity.ts";
import { failedPrecondition } from "../errors.ts";
import { inTurn } from "../rpc/large-responses.ts";
import { columnFields, eventColumns } from "./fields.ts";
import { labelSql } from "./labels.ts";
import { matchingOccurrences, refuseUnused } from "./matching.ts";
import { selection, toEvent } from "./messages.ts";
import { type OccurrenceKey, occurrenceText } from "./occurrences.ts";
import { listColumns, lookedUp, type OccurrenceRow } from "./rows.ts";

/** How many occurrences are grouped at most. */
const groupedMax = 200_000;
const sizeDefault = 50;
const sizeMax = 500;
const membersMax = 5;
/** How many characters of a label's value distinguish groups. */
const valueCharsMax = 1024;

/** A group's values: one for each label asked for, in order, then with `byEntity` the entity's id in hex. */
type GroupRow = Record<`value_${number}`, string> & {
  count: bigint;
  acknowledged: bigint;
  severity: number;
  oldest: bigint;
  newest: bigint;
  /** Ids of events, hex. */
  event_ids: string[];
  numbers: number[];
  key_texts: string[];
  /** Of all groups. */
  groups: bigint;
  /** Of all occurrences that match. */
  found: bigint;
};

function sortKeys(db: Db, sort: Sort, values: number): SortKey[] {
  const key = (name: string, descending: boolean, type: SortKey["type"] = "bigint"): SortKey => ({
    expression: db`${db(name)}`,
    type,
    descending,
    required: true,
  });
  const byCount = key("count", true);
  const first: Record<number, SortKey[]> = {
    [Sort.SEVERITY]: [key("severity", true), byCount],
    [Sort.NEWEST]: [key("newest", true)],
    [Sort.OLDEST]: [key("oldest", false)],
  };
  const byValue = Array.from({ length: values }, (_, i) => key(`value_${i}`, false, "text"));
  return [...(first[sort] ?? [byCount]), ...byValue];
}

async function readGroups(
  db: Db,
  tenantId: string,
  { labels, byEntity, sort }: GroupEventsRequest,
  query: EventQuery,
  { rowsMax, after }: Pick<ReturnType<typeof countedPage>, "rowsMax" | "after">,
  signal: AbortSignal,
): Promise<GroupRow[]> {
  const { from, where } = await matchingOccurrences(db, tenantId, query, "query", signal);
  // The empty text stands for no label, as it does in matchers.
  const ofLabels = labels.map((name) => db`left(coalesce(${labelSql(db, name)}, ''), ${valueCharsMax})`);
  const values = byEntity ? [...ofLabels, db`encode(e.entity_id, 'hex')`] : ofLabels;
  const keys = sortKeys(db, sort, values.length);
  const names = values.map((_, i) => db`${db(`value_${i}`)}`);
  const named = values.map((value, i) => db`${value} collate "C" as ${names[i] as Fragment}`);
  const columns = db`o.event_id, o.number, o.severity, o.acknowledged, o.start_ms`;
  const list = names.length === 0 ? db`` : sqlJoin(db, names, ",");
  const and = names.length === 0 ? db`` : db`${list},`;
  // Before PostgreSQL has statistics of a tenant, a join would compare each occurrence with each event: rows that the values need are looked up.
  // The empty object makes PostgreSQL unpack metadata once: by themselves they are unpacked up to four times for each label.
  const found =
    names.length === 0
      ? db`select ${columns} from ${from} where ${where} limit ${groupedMax + 1}`
      : db`
        select ${columns}, ${sqlJoin(db, named, ",")}
        from (select ${columns}, o.type, o.metadata || '{}'::jsonb as metadata from ${from} where ${where} limit ${groupedMax + 1}) as o
          ${lookedUp(db, tenantId)}`;
  const statement = db<GroupRow[]>`
    with found as materialized (${found}), ranked as (
      select *, row_number() over (
        ${names.length === 0 ? db`` : db`partition by ${list}`} order by severity desc, start_ms desc, event_id, number
      ) as place
      from found
    ), groups as (
      select ${and} count(*) as count, count(*) filter (where acknowledged) as acknowledged, max(severity) as severity,
        min(start_ms) as oldest, max(start_ms) as newest,
        array_agg(encode(event_id, 'hex') order by place) filter (where place <= ${membersMax}) as event_ids,
        array_agg(number order by place) filter (where place <= ${membersMax}) as numbers
      from ranked
      group by ${names.length === 0 ? db`()` : list} having count(*) > 0
    )
    select *, ${keyTexts(db, keys)} as key_texts, (select count(*) from groups) as groups, (select count(*) from found) as found
    from groups
    where ${after === undefined ? db`true` : beyond(db, keys, after)}
    order by ${orderBy(db, keys)}
    limit ${rowsMax}`;
  return await cancelOn(statement, signal);
}

/** Groups are made in the database, page by page anew: what is open moves on between two pages. @throws code 9 for too many */
export async function groupEvents(
  db: Db,
  tenantId: string,
  request: GroupEventsRequest,
  signal: AbortSignal,
): Promise<GroupEventsResponse> {
  const query = request.query ?? create(EventQuerySchema);
  refuseUnused(query, "query", ["sortBy", "pageInput", "fields"]);
  const { labels, byEntity, sort, pageToken } = request;
  const digest = [Buffer.from(toBinary(EventQuerySchema, query)).toString("base64"), labels, byEntity, sort];
  const page = countedPage(
    GroupEventsRequestSchema.typeName,
    tenantId,
    { pageSize: Math.min(request.pageSize, sizeMax), pageToken },
    JSON.stringify(digest),
    sizeDefault,
  );
  const rows = await inTurn(tenantId, signal, () => readGroups(db, tenantId, request, query, page, signal));
  const [first] = rows;
  if ((first?.found ?? 0n) > groupedMax) throw tooManyToGroup();
  const total = await page.total(async () => first?.groups ?? 0n);
  const { items, nextPageToken } = page.cut(rows, (row) => row.key_texts, total);
  const members = await readMembers(db, tenantId, items.flatMap(keysOf));
  const groups = items.map((row): EventGroup => {
    const own = keysOf(row).flatMap((key) => members.get(occurrenceText(key)) ?? []);
    return create(EventGroupSchema, {
      labels: Object.fromEntries(labels.map((name, i) => [name, row[`value_${i}`] ?? ""]).filter(([, value]) => value)),
      ...(byEntity && {
        entity: idText(Buffer.from(row[`value_${labels.length}`] ?? "", "hex")),
        entityName: own[0]?.entity_name,
        entityDisplayName: own[0] && displayName(own[0].entity_name, own[0].entity_dimensions),
      }),
      count: row.count,
      acknowledgedCount: row.acknowledged,
      severity: row.severity as Severity,
      oldestTime: row.oldest,
      newestTime: row.newest,
      members: own.map((member) => toEvent(member, [member], 0n, tenantId, shown)),
    });
  });
  return create(GroupEventsResponseSchema, { groups, nextPageToken, totalCount: total });
}

const tooManyToGroup = () =>
  failedPrecondition(
    `more than ${groupedMax} occurrences match: group fewer, for example by statuses or a shorter time`,
    ErrorReason.ANSWER_TOO_LARGE,
  );

const keysOf = ({ event_ids, numbers }: GroupRow): OccurrenceKey[] =>
  event_ids.map((id, i) => ({ eventId: Buffer.from(id, "hex"), number: numbers[i] as number }));

/** Members are shown without what may be large, and without the count of their events. */
const shown = selection(columnFields.filter((name) => name !== "body" && name !== "count"));

async function readMembers(
  db: Db,
  tenantId: string,
  keys: readonly OccurrenceKey[],
): Promise<Map<string, OccurrenceRow>> {
  if (keys.length === 0) return new Map();
  const rows = await transaction(db, (tx) => {
    planWithoutValues(tx);
    return tx<OccurrenceRow[]>`
      select o.*, ${eventColumns(tx)}, n.name as entity_name, n.dimensions as entity_dimensions
      from unnest(
          ${byteaArray(keys.map(({ eventId }) => eventId))}::bytea[],
          ${int4Array(keys.map(({ number }) => number))}::int4[]
        ) as asked (event_id, number)
        cross join lateral (
          select event_id, ${listColumns(tx)},
            case when end_ms is not null and closed_by is null then jsonb_build_object('reason', metadata -> 'reason') else '{}' end as metadata
          from occurrences
          where tenant_id = ${tenantId} and event_id = asked.event_id and number >= asked.number
            and number <= asked.number
          order by number limit 1
        ) as o
        ${lookedUp(tx, tenantId)}`;
  });
  const nothing = { body: "", entity_metadata: {} };
  return new Map(
    rows.map((row) => [occurrenceText({ eventId: row.event_id, number: row.number }), { ...row, ...nothing }]),
  );
}
