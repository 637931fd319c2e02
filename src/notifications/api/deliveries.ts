import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Fragment } from "postgres";
import {
  type DeliveryService,
  DeliveryStatus,
  DeliveryStatusSchema,
  GetDeliveryResponseSchema,
  type ListDeliveriesRequest,
  ListDeliveriesRequestSchema,
  type ListDeliveriesResponse,
  ListDeliveriesResponseSchema,
  type ListDeliveryMembersRequest,
  ListDeliveryMembersRequestSchema,
  ListDeliveryMembersResponseSchema,
  RetryDeliveriesResponseSchema,
  RetryDeliveryResponseSchema,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { bigintArray, uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { cancelOn } from "../../db/driver/cancel.ts";
import { beyond, keyTextsOf } from "../../db/paging/keyset.ts";
import { pageBytesMax } from "../../db/paging/page-contents.ts";
import { countedPage } from "../../db/paging/token-page.ts";
import { sqlJoin } from "../../db/sql-join.ts";
import { afterCommit, transaction } from "../../db/transaction.ts";
import { idText, parseId } from "../../entities/identity.ts";
import { failedPrecondition, notFound } from "../../errors.ts";
import { parseOccurrenceId } from "../../events/occurrence-id.ts";
import { announce } from "../../jobs/queue.ts";
import { principalOf } from "../../rpc/context.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { checkEndMs, timestampMs } from "../../rpc/times.ts";
import { audited } from "../../tenants/audit.ts";
import { newest } from "../queue/attempts.ts";
import { deliveriesKind } from "../queue/delivery-queue.ts";
import { occurrenceRef, type SubjectColumns, subjectId, toSubject } from "../subject/subject.ts";
import {
  type DeliveryRow,
  deliveryColumns,
  hasMember,
  heldCondition,
  newestFirst,
  readDeliveries,
  readGroupLabels,
  toDelivery,
} from "./delivery-rows.ts";

/** How many of these deliveries an answer holds, one at least. Of a delivery its attempts alone may be large. */
function fitting(rows: readonly DeliveryRow[]): number {
  let bytes = 0;
  const end = rows.findIndex(({ attempts }) => {
    for (const { answer, recipients = [] } of newest(attempts))
      for (const said of [answer, ...recipients.flatMap((each) => [each.address, each.answer])])
        bytes += Buffer.byteLength(said);
    return bytes > pageBytesMax;
  });
  return end === -1 ? rows.length : Math.max(1, end);
}

/** What the filters but that of the status say of a row of either table; undefined when no row can match. */
function filtersOf(
  db: Db,
  tenantId: string,
  request: ListDeliveriesRequest,
  members: MemberTimes | undefined,
  { startMs, endMs }: Times,
): Fragment | undefined {
  const { rule, destination, trigger, eventId, entityId, metricName, summary, groupKey } = request;
  const conditions = [db`tenant_id = ${tenantId}`];
  if (rule !== "") conditions.push(db`rule_name = ${rule}`);
  if (destination !== "") conditions.push(db`destination_name = ${destination}`);
  if (trigger !== "") conditions.push(db`${trigger} = any(trigger_names)`);
  if (startMs !== undefined) conditions.push(db`created_ms >= ${startMs}`);
  if (endMs !== undefined) conditions.push(db`created_ms < ${endMs}`);
  if (metricName !== "") conditions.push(db`metric_name = ${metricName}`);
  if (entityId !== "") {
    const entity = parseId(entityId);
    if (entity === undefined) return undefined;
    conditions.push(db`(entity_id = ${entity} or ${hasMember(db, tenantId, db`entity_id = ${entity}`)})`);
  }
  if (eventId !== "") {
    const occurrence = parseOccurrenceId(eventId);
    const event = occurrence?.eventId ?? parseId(eventId);
    if (event === undefined) return undefined;
    const own = db`event_id = ${event} and ${occurrence === undefined ? db`true` : db`number = ${occurrence.number}`}`;
    const [first, last] = occurrence === undefined ? [0, 0xffffffff] : [occurrence.number, occurrence.number];
    const keyOf = (number: number) => occurrenceRef({ eventId: event, number }).key;
    const within = db`subject >= ${keyOf(first)} and subject <= ${keyOf(last)}`;
    conditions.push(db`(${own} or ${hasMember(db, tenantId, within)})`);
  }
  if (groupKey !== "") conditions.push(db`subject = ${Buffer.from(groupKey, "base64url")} and told ? 'group'`);
  if (summary !== "") {
    if (members === undefined) return undefined;
    // By the primary keys.
    conditions.push(
      db`created_ms >= ${members.first}`,
      db`created_ms <= ${members.last}`,
      db`id = any(array(
        select delivery_id from summary_members where tenant_id = ${tenantId} and summary_id = ${summary}))`,
    );
  }
  return sqlJoin(db, conditions, "and");
}

/** The ends of a time range, ms since the epoch. */
interface Times {
  readonly startMs: bigint | undefined;
  readonly endMs: bigint | undefined;
}

/** When the first and the last of what a summary stands for was decided. */
interface MemberTimes {
  first: bigint;
  last: bigint;
}

/** Reads it; undefined when this is no summary. */
async function memberTimes(db: Db, tenantId: string, summary: string): Promise<MemberTimes | undefined> {
  if (createdOf(summary) === undefined) return undefined;
  const [times] = await db<MemberTimes[]>`
    select min(created_ms) as first, max(created_ms) as last from summary_members
    where tenant_id = ${tenantId} and summary_id = ${summary} having count(*) > 0`;
  return times;
}

async function listDeliveries(
  db: Db,
  tenantId: string,
  request: ListDeliveriesRequest,
  signal: AbortSignal,
): Promise<ListDeliveriesResponse> {
  const { status } = request;
  const startMs = request.startTime && timestampMs(request.startTime, "startTime");
  const endMs = request.endTime && timestampMs(request.endTime, "endTime");
  if (endMs !== undefined) checkEndMs(endMs, "endTime");
  const query = JSON.stringify([
    request.rule,
    request.destination,
    request.trigger,
    request.eventId,
    request.entityId,
    request.metricName,
    status,
    ...(request.summary === "" ? [] : [request.summary]),
    ...(request.groupKey === "" ? [] : [`group ${request.groupKey}`]),
    ...(startMs === undefined && endMs === undefined ? [] : [`${startMs}-${endMs}`]),
  ]);
  const page = countedPage(ListDeliveriesRequestSchema.typeName, tenantId, request, query);
  const members = await memberTimes(db, tenantId, request.summary);
  const matching = filtersOf(db, tenantId, request, members, { startMs, endMs });
  if (matching === undefined) return create(ListDeliveriesResponseSchema);
  const any = status === DeliveryStatus.DELIVERY_STATUS_UNSPECIFIED;
  const { PENDING, HELD } = DeliveryStatus;
  const waits = status === PENDING ? db`not ${heldCondition(db)}` : status === HELD ? heldCondition(db) : db`${any}`;
  const waiting = db`${matching} and ${waits}`;
  const done = db`${matching} and (${any} or status = ${DeliveryStatusSchema.value[status]?.name ?? ""})`;
  const place = page.after === undefined ? db`true` : beyond(db, newestFirst(db), page.after);
  const rowsRead = readDeliveries(db, {
    waiting: db`${waiting} and ${place}`,
    done: db`${done} and ${place}`,
    limit: page.rowsMax,
  });
  async function count() {
    const totalRead = db<{ total: bigint }[]>`
      select (select count(*) from due_deliveries where ${waiting})
        + (select count(*) from delivery_history where ${done}) as total`;
    const [row] = await cancelOn(totalRead, signal);
    return row?.total ?? 0n;
  }
  const [rows, total] = await Promise.all([cancelOn(rowsRead, signal), page.total(count)]);
  const { items, nextPageToken } = page.cut(rows, (row) => row.keyTexts, total, fitting(rows));
  const labels = await readGroupLabels(db, tenantId, items);
  return create(ListDeliveriesResponseSchema, {
    deliveries: items.map((row) => toDelivery(row, labels)),
    nextPageToken,
    totalCount: total,
  });
}

/** The moment that a delivery's id begins with, ms; undefined when it is none. */
function createdOf(id: string): bigint | undefined {
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(id)) return undefined;
  return BigInt(`0x${id.slice(0, 8)}${id.slice(9, 13)}`);
}

/** A delivery, waiting or done. @throws code 5 */
async function getDelivery(db: Db, tenantId: string, id: string): Promise<DeliveryRow> {
  const createdMs = createdOf(id);
  if (createdMs === undefined) throw notFound("delivery", id);
  const [row] = await readDeliveries(db, {
    waiting: db`tenant_id = ${tenantId} and id = ${id}`,
    done: db`tenant_id = ${tenantId} and created_ms = ${createdMs} and id = ${id}`,
    limit: 1,
  });
  if (row === undefined) throw notFound("delivery", id);
  return row;
}

/**
 * Puts a failed delivery back among those that are due, in the caller's transaction.
 * @throws code 5; code 9 unless it is FAILED, and when it is not needed any more
 */
export async function retryDelivery(tx: Db, tenantId: string, id: string, nowMs: number): Promise<DeliveryRow> {
  const { status, createdMs } = await getDelivery(tx, tenantId, id);
  if (status !== "FAILED")
    throw failedPrecondition(`delivery "${id}" is ${status}: only one that has FAILED is tried again`);
  const failed = tx`tenant_id = ${tenantId} and created_ms = ${BigInt(createdMs)} and id = ${id} and status = 'FAILED'`;
  const [judged] = await judgeFailed(tx, tenantId, failed);
  if (judged?.unneeded) throw failedPrecondition(`delivery "${id}" is not needed any more: ${judged.unneeded}`);
  const [row] = await putBack(tx, failed, nowMs);
  if (row === undefined) throw notFound("delivery", id);
  return row;
}

/** How many failed deliveries of a destination a call looks at, and tries again. */
const failedMax = 10_000;
const retriedMax = 1000;
const replaced = "a later one of the same subject replaces it";

interface Judged {
  id: string;
  createdMs: bigint;
  /** Why it is not tried again; null: it is needed. */
  unneeded: string | null;
}

/**
 * Returns the newest failed deliveries of a condition, the oldest of them first, with the reason why one is not needed any more. The
 * history is read only as far back as the oldest of those that nothing else rules out and that were followed by another decision.
 */
function judgeFailed(tx: Db, tenantId: string, failed: Fragment) {
  return tx<Judged[]>`
    with failed as materialized (
      select id, created_ms, rule_id, rule_name, destination_name, subject, occasion = 'clear' as clears, told ? 'window' as of_window,
        told ? 'group' as of_group
      from delivery_history where ${failed} order by created_ms desc, id desc limit ${failedMax}
    ), judged as materialized (
      select f.*, case
          when r.enabled is not true then 'the rule is disabled, or there is no such rule any more'
          when not exists (
            select from rule_destinations d
            where d.tenant_id = ${tenantId} and d.rule_name = f.rule_name and d.destination_name = f.destination_name
          ) then 'the rule does not name the destination any more'
          when f.of_window then null
          when f.clears and (m.standing and m.matched_ms > f.created_ms or g.opened_ms > f.created_ms)
            then 'the condition has begun again'
          when f.of_group and not f.clears and (g.opened_ms <= f.created_ms) is not true then 'the group is over'
          when not f.of_group and not f.clears and (m.standing and m.matched_ms <= f.created_ms) is not true then 'the condition is over'
          when f.place > 1 or exists (
            select from due_deliveries w
            where w.tenant_id = ${tenantId} and w.destination_name = f.destination_name and w.subject = f.subject
              and w.created_ms >= 0 and w.created_ms > f.created_ms and w.rule_id = f.rule_id
          ) then ${replaced}
        end as unneeded,
        not f.of_window and (case when f.of_group then g.last_ms else m.last_ms end <= f.created_ms) is not true as followed
      from (
          select *, row_number() over (
            partition by destination_name, rule_id, subject, clears order by created_ms desc, id desc
          ) as place from failed
        ) as f
        left join lateral (
          select enabled from rules where tenant_id = ${tenantId} and name = f.rule_name and id = f.rule_id limit 1
        ) as r on true
        left join lateral (
          select standing, matched_ms, last_ms from rule_matches
          where tenant_id = ${tenantId} and subject = f.subject and rule_id = f.rule_id limit 1
        ) as m on true
        left join lateral (
          select opened_ms, last_ms from alert_groups
          where tenant_id = ${tenantId} and rule_id = f.rule_id and group_key = f.subject limit 1
        ) as g on true
    ), open as materialized (
      select * from judged where unneeded is null and followed
    ), sent as (
      select d.destination_name, d.rule_id, d.subject, max(d.created_ms) as created_ms
      from delivery_history d
      where d.tenant_id = ${tenantId} and d.status = 'SENT' and d.created_ms > (select min(created_ms) from open)
        and (d.destination_name, d.rule_id, d.subject) in (select destination_name, rule_id, subject from open)
      group by d.destination_name, d.rule_id, d.subject
    )
    select j.id, j.created_ms as "createdMs",
      case when j.followed and s.created_ms > j.created_ms then ${replaced} else j.unneeded end as unneeded
    from judged as j
      left join sent as s
        on s.destination_name = j.destination_name and s.rule_id = j.rule_id and s.subject = j.subject
    order by j.created_ms, j.id`;
}

/** Puts the failed deliveries of a condition back among those that are due, in the caller's transaction. */
async function putBack(tx: Db, failed: Fragment, nowMs: number): Promise<DeliveryRow[]> {
  const now = BigInt(nowMs);
  // Of two calls at once the second waits here, and then finds nothing.
  const [, rows] = await Promise.all([
    tx`select from delivery_history where ${failed} order by created_ms, id for update`,
    tx<DeliveryRow[]>`
      insert into due_deliveries (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
        event_id, number, entity_id, metric_name, occasion, told, attempts, error, due_ms, lease_until_ms, fence, tries,
        slow_tries, retried_ms)
      select tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
        event_id, number, entity_id, metric_name, occasion, told, attempts, error, ${now}, 0, ${now}, 0, 0, ${now}
      from delivery_history where ${failed}
      returning ${deliveryColumns(tx)}, 'PENDING' as status, null as "silenceId", due_ms::float8 as "dueMs"`,
    tx`delete from delivery_history where ${failed}`,
  ]);
  return rows;
}

/**
 * Puts what has failed of a destination and is still needed back among what is due, in the caller's transaction.
 * @throws code 5; code 9 for a destination that is disabled: all would fail again
 */
async function retryDeliveries(tx: Db, tenantId: string, destination: string, nowMs: number) {
  const [found] = await tx<{ reason: string }[]>`
    select disabled_reason as reason from destinations where tenant_id = ${tenantId} and name = ${destination}`;
  if (found === undefined) throw notFound("destination", destination);
  if (found.reason !== "") throw failedPrecondition(`destination "${destination}" is disabled: ${found.reason}`);
  const ofDestination = tx`tenant_id = ${tenantId} and destination_name = ${destination} and status = 'FAILED'`;
  const [judged, [all]] = await Promise.all([
    judgeFailed(tx, tenantId, ofDestination),
    tx<{ count: bigint }[]>`select count(*) as count from delivery_history where ${ofDestination}`,
  ]);
  const needed = judged.filter(({ unneeded }) => unneeded === null);
  const taken = needed.slice(0, retriedMax);
  const times = bigintArray(taken.map(({ createdMs }) => createdMs));
  const ids = uuidArray(taken.map(({ id }) => id));
  const failed = tx`tenant_id = ${tenantId} and created_ms = any(${times}::bigint[]) and id = any(${ids}::uuid[])
    and status = 'FAILED'`;
  const rows = taken.length === 0 ? [] : await putBack(tx, failed, nowMs);
  return create(RetryDeliveriesResponseSchema, {
    retriedCount: BigInt(rows.length),
    unneededCount: BigInt(judged.length - needed.length),
    remainingCount: (all?.count ?? 0n) - BigInt(judged.length - needed.length + taken.length),
    deliveryIds: rows.map(({ id }) => id),
  });
}

/** The members of the message that a delivery is, in their order; none of one that is about one match. @throws code 5 */
async function listMembers(db: Db, tenantId: string, request: ListDeliveryMembersRequest) {
  const { group } = await getDelivery(db, tenantId, request.id);
  const page = countedPage(ListDeliveryMembersRequestSchema.typeName, tenantId, request, request.id);
  if (!group) return create(ListDeliveryMembersResponseSchema);
  const after = page.after === undefined ? -1 : Number(keyTextsOf(page.after, ["bigint"])[0]);
  const rows = await db<MemberRow[]>`
    select place, subject, event_id, number, entity_id, null as metric_name, resolved from group_message_members
    where tenant_id = ${tenantId} and message_id = ${group.message} and place > ${after}::int4
    order by place limit ${page.rowsMax}`;
  const total = await page.total(async () => group.firing + group.resolved);
  const headlines = await readHeadlines(db, tenantId, group.message);
  const { items, nextPageToken } = page.cut(rows, ({ place }) => [String(place)], total);
  const members = items.map(({ resolved, ...row }) => {
    const subject = toSubject(row);
    const { eventId, entityId } = subject;
    const id = subjectId(subject);
    return {
      eventId: eventId === undefined ? "" : idText(eventId),
      occurrenceId: eventId === undefined ? "" : id,
      subject: id,
      entityId: idText(entityId),
      resolved,
      headline: headlines.get(id) ?? "",
    };
  });
  return create(ListDeliveryMembersResponseSchema, { members, nextPageToken, totalCount: total });
}

/** Reads what a group's message says of its members, by their subjects, of as many as it keeps. */
async function readHeadlines(db: Db, tenantId: string, message: string): Promise<ReadonlyMap<string, string>> {
  const rows = await db<{ subject: string; headline: string }[]>`
    select alert ->> 'subjectId' as subject, alert ->> 'headline' as headline
    from group_messages m cross join lateral json_array_elements(m.told -> 'alerts') as alert
    where m.tenant_id = ${tenantId} and m.id = ${message}`;
  return new Map(rows.map(({ subject, headline }) => [subject, headline]));
}

interface MemberRow extends SubjectColumns {
  place: number;
  entity_id: Buffer;
  resolved: boolean;
}

/** What was sent, and what was not. */
export function deliveryService(
  db: Db,
  { nowMs, wake }: { nowMs(): number; wake(tenantId: string): void },
): Partial<ServiceImpl<typeof DeliveryService>> {
  return {
    listDeliveries: (request, context) => listDeliveries(db, principalOf(context).tenantId, request, context.signal),

    async getDelivery({ id }, context) {
      const { tenantId } = principalOf(context);
      const row = await getDelivery(db, tenantId, id);
      return create(GetDeliveryResponseSchema, {
        delivery: toDelivery(row, await readGroupLabels(db, tenantId, [row])),
      });
    },

    listDeliveryMembers: (request, context) => listMembers(db, principalOf(context).tenantId, request),

    async retryDelivery({ id }, context) {
      const { tenantId } = principalOf(context);
      return await transaction(db, async (tx) => {
        const row = await retryDelivery(tx, tenantId, id, nowMs());
        await audited(tx, context, id);
        await announce(tx, { tenantId, kind: deliveriesKind }, BigInt(nowMs()));
        afterCommit(tx, () => wake(tenantId));
        return create(RetryDeliveryResponseSchema, {
          delivery: toDelivery(row, await readGroupLabels(tx, tenantId, [row])),
        });
      });
    },

    async retryDeliveries({ destination }, context) {
      const { tenantId } = principalOf(context);
      const name = normalizedName(destination);
      return await transaction(db, async (tx) => {
        const answer = await retryDeliveries(tx, tenantId, name, nowMs());
        await audited(tx, context, name);
        if (answer.retriedCount > 0n) await announce(tx, { tenantId, kind: deliveriesKind }, BigInt(nowMs()));
        afterCommit(tx, () => wake(tenantId));
        return answer;
      });
    },
  };
}
