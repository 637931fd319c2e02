import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Fragment } from "postgres";
import {
  type Delivery,
  DeliverySchema,
  type DeliveryService,
  DeliveryStatus,
  DeliveryStatusSchema,
  type ListDeliveriesRequest,
  ListDeliveriesRequestSchema,
  type ListDeliveriesResponse,
  ListDeliveriesResponseSchema,
  RetryDeliveryResponseSchema,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { joined } from "../db/joined.ts";
import { beyond, keyTexts, type SortKey } from "../db/paging/keyset.ts";
import { pageBytesMax } from "../db/paging/page-contents.ts";
import { countedPage } from "../db/paging/token-page.ts";
import { afterCommit, transaction } from "../db/transaction.ts";
import { idText, parseId } from "../entities/identity.ts";
import { failedPrecondition, notFound } from "../errors.ts";
import { parseOccurrenceId } from "../events/identity.ts";
import { announce } from "../jobs/queue.ts";
import { principalOf } from "../rpc/context.ts";
import { audited } from "../tenants/audit.ts";
import { type Attempt, countOf, newest } from "./sending/attempts.ts";
import { deliveriesKind } from "./sending/due.ts";

interface DeliveryRow {
  id: string;
  createdMs: number;
  ruleName: string;
  triggerName: string | null;
  destinationName: string;
  eventId: Buffer | null;
  number: number | null;
  entityId: Buffer | null;
  metricName: string | null;
  occasion: string;
  attempts: Attempt[];
  error: string;
  status: keyof typeof DeliveryStatus;
  dueMs: number | null;
  keyTexts: (string | null)[];
}

/** The columns of a DeliveryRow that both tables have. */
const shared = (db: Db) => db`id, created_ms as "createdMs", rule_name as "ruleName", trigger_names[1] as "triggerName",
  destination_name as "destinationName", event_id as "eventId", number, entity_id as "entityId",
  metric_name as "metricName", occasion, attempts, error`;

function toDelivery(row: DeliveryRow): Delivery {
  const { eventId, number, entityId, dueMs, createdMs } = row;
  return create(DeliverySchema, {
    id: row.id,
    rule: row.ruleName,
    trigger: row.triggerName ?? "",
    destination: row.destinationName,
    eventId: eventId === null ? "" : idText(eventId),
    occurrenceId: eventId === null ? "" : `${idText(eventId)}:${number}`,
    entityId: entityId === null ? "" : idText(entityId),
    metricName: row.metricName ?? "",
    occasion: row.occasion,
    status: DeliveryStatus[row.status],
    attempts: countOf(row.attempts),
    tries: newest(row.attempts).map(({ timeMs, reason, answer }) => ({
      time: timestampFromMs(timeMs),
      reason,
      answer,
    })),
    error: row.error,
    ...(dueMs !== null && { nextTryTime: timestampFromMs(dueMs) }),
    createTime: timestampFromMs(Number(createdMs)),
  });
}

/** How many of these deliveries an answer holds, one at least. Of a delivery its attempts alone may be large. */
function fitting(rows: readonly DeliveryRow[]): number {
  let bytes = 0;
  const end = rows.findIndex(({ attempts }) => {
    for (const { answer } of newest(attempts)) bytes += Buffer.byteLength(answer);
    return bytes > pageBytesMax;
  });
  return end === -1 ? rows.length : Math.max(1, end);
}

/** What the filters but that of the status say of a row of either table; undefined when no row can match. */
function filtersOf(db: Db, tenantId: string, request: ListDeliveriesRequest): Fragment | undefined {
  const { rule, destination, trigger, eventId, entityId, metricName } = request;
  const conditions = [db`tenant_id = ${tenantId}`];
  if (rule !== "") conditions.push(db`rule_name = ${rule}`);
  if (destination !== "") conditions.push(db`destination_name = ${destination}`);
  if (trigger !== "") conditions.push(db`${trigger} = any(trigger_names)`);
  if (metricName !== "") conditions.push(db`metric_name = ${metricName}`);
  if (entityId !== "") {
    const entity = parseId(entityId);
    if (entity === undefined) return undefined;
    conditions.push(db`entity_id = ${entity}`);
  }
  if (eventId !== "") {
    const occurrence = parseOccurrenceId(eventId);
    const event = occurrence?.eventId ?? parseId(eventId);
    if (event === undefined) return undefined;
    conditions.push(db`event_id = ${event}`);
    if (occurrence !== undefined) conditions.push(db`number = ${occurrence.number}`);
  }
  return joined(db, conditions, "and");
}

async function listDeliveries(
  db: Db,
  tenantId: string,
  request: ListDeliveriesRequest,
  signal: AbortSignal,
): Promise<ListDeliveriesResponse> {
  const { status } = request;
  const query = JSON.stringify([
    request.rule,
    request.destination,
    request.trigger,
    request.eventId,
    request.entityId,
    request.metricName,
    status,
  ]);
  const page = countedPage(ListDeliveriesRequestSchema.typeName, tenantId, request, query);
  const matching = filtersOf(db, tenantId, request);
  if (matching === undefined) return create(ListDeliveriesResponseSchema);
  const keys: SortKey[] = [
    { expression: db`created_ms`, type: "bigint", descending: true, required: true },
    { expression: db`id::text`, type: "text", descending: true, required: true },
  ];
  const any = status === DeliveryStatus.DELIVERY_STATUS_UNSPECIFIED;
  const waiting = db`${matching} and ${any || status === DeliveryStatus.PENDING}`;
  const done = db`${matching} and (${any} or status = ${DeliveryStatusSchema.value[status]?.name ?? ""})`;
  const place = page.after === undefined ? db`true` : beyond(db, keys, page.after);
  const newest = db`order by created_ms desc, id::text desc limit ${page.rowsMax}`;
  // By delivery_history's primary key, partition by partition; what waits is little.
  const rowsRead = db<DeliveryRow[]>`
    select * from (
      (select ${shared(db)}, 'PENDING' as status, due_ms::float8 as "dueMs", ${keyTexts(db, keys)} as "keyTexts",
        created_ms, id::text as id_text
        from due_deliveries where ${waiting} and ${place} ${newest})
      union all
      (select ${shared(db)}, status, null, ${keyTexts(db, keys)}, created_ms, id::text
        from delivery_history where ${done} and ${place} ${newest})
    ) as both_kinds order by created_ms desc, id_text desc limit ${page.rowsMax}`;
  async function count() {
    const totalRead = db<{ total: bigint }[]>`
      select (select count(*) from due_deliveries where ${waiting})
        + (select count(*) from delivery_history where ${done}) as total`;
    const [row] = await cancelOn(totalRead, signal);
    return row?.total ?? 0n;
  }
  const [rows, total] = await Promise.all([cancelOn(rowsRead, signal), page.total(count)]);
  const { items, nextPageToken } = page.cut(rows, (row) => row.keyTexts, total, fitting(rows));
  return create(ListDeliveriesResponseSchema, { deliveries: items.map(toDelivery), nextPageToken, totalCount: total });
}

/** The moment that a delivery's id begins with, ms; undefined when it is none. */
function createdOf(id: string): bigint | undefined {
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(id)) return undefined;
  return BigInt(`0x${id.slice(0, 8)}${id.slice(9, 13)}`);
}

/** Puts a failed delivery back among those that are due, in the caller's transaction. @throws code 5; code 9 unless it is FAILED */
async function retryDelivery(tx: Db, tenantId: string, id: string, nowMs: number): Promise<DeliveryRow> {
  const createdMs = createdOf(id);
  if (createdMs === undefined) throw notFound("delivery", id);
  const now = BigInt(nowMs);
  const [row] = await tx<DeliveryRow[]>`
    with back as (
      delete from delivery_history
      where tenant_id = ${tenantId} and created_ms = ${createdMs} and id = ${id} and status = 'FAILED' returning *
    )
    insert into due_deliveries (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
      event_id, number, entity_id, metric_name, occasion, told, attempts, error, due_ms, lease_until_ms, fence, tries,
      slow_tries, retried_ms)
    select ${tenantId}::uuid, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
      event_id, number, entity_id, metric_name, occasion, told, attempts, error, ${now}, 0, ${now}, 0, 0, ${now}
    from back
    returning ${shared(tx)}, 'PENDING' as status, due_ms::float8 as "dueMs"`;
  if (row !== undefined) return row;
  const [other] = await tx<{ status: string }[]>`
    select status from delivery_history where tenant_id = ${tenantId} and created_ms = ${createdMs} and id = ${id}
    union all select 'PENDING' from due_deliveries where tenant_id = ${tenantId} and id = ${id}`;
  if (other === undefined) throw notFound("delivery", id);
  throw failedPrecondition(`delivery "${id}" is ${other.status}: only one that has FAILED is tried again`);
}

/** What was sent, and what was not. */
export function deliveryService(
  db: Db,
  { nowMs, wake }: { nowMs(): number; wake(tenantId: string): void },
): Partial<ServiceImpl<typeof DeliveryService>> {
  return {
    listDeliveries: (request, context) => listDeliveries(db, principalOf(context).tenantId, request, context.signal),

    async retryDelivery({ id }, context) {
      const { tenantId } = principalOf(context);
      return await transaction(db, async (tx) => {
        const row = await retryDelivery(tx, tenantId, id, nowMs());
        await audited(tx, context, id);
        await announce(tx, { tenantId, kind: deliveriesKind }, BigInt(nowMs()));
        afterCommit(tx, () => wake(tenantId));
        return create(RetryDeliveryResponseSchema, { delivery: toDelivery(row) });
      });
    },
  };
}
