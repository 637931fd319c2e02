import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Fragment } from "postgres";
import { type Delivery, DeliverySchema, DeliveryStatus } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { keyTexts, type SortKey } from "../../db/paging/keyset.ts";
import { idText } from "../../entities/identity.ts";
import { type Attempt, attemptCount, newest } from "../queue/attempts.ts";
import { neverMs } from "../silences/mutes.ts";
import type { DeliverySnapshot } from "../subject/snapshot.ts";
import { type SubjectColumns, subjectId, toSubject } from "../subject/subject.ts";

/** A delivery as it is stored, waiting or done. */
export interface DeliveryRow extends SubjectColumns {
  id: string;
  createdMs: number;
  ruleName: string;
  triggerName: string | null;
  destinationName: string;
  occasion: string;
  attempts: Attempt[];
  error: string;
  status: keyof typeof DeliveryStatus;
  silenceId: string | null;
  /** The message of a group. */
  group: DeliverySnapshot["group"] | null;
  dueMs: number | null;
  keyTexts: (string | null)[];
}

/** The columns of a DeliveryRow that both tables have. */
export const deliveryColumns = (
  db: Db,
) => db`id, created_ms as "createdMs", rule_name as "ruleName", trigger_names[1] as "triggerName",
  destination_name as "destinationName", subject, event_id, number, entity_id, metric_name, occasion, attempts, error, told -> 'group' as "group"`;

/** By the ids of messages: the labels that their groups share. */
export type GroupLabels = ReadonlyMap<string, Readonly<Record<string, string>>>;

/** Reads the labels of the groups that deliveries are about. */
export async function readGroupLabels(db: Db, tenantId: string, rows: readonly DeliveryRow[]): Promise<GroupLabels> {
  const ids = [...new Set(rows.flatMap(({ group }) => group?.message ?? []))];
  if (ids.length === 0) return new Map();
  const found = await db<{ id: string; labels: Record<string, string> }[]>`
    select id, told -> 'labels' as labels from group_messages
    where tenant_id = ${tenantId} and id = any(${uuidArray(ids)}::uuid[])`;
  return new Map(found.map(({ id, labels }) => [id, labels]));
}

/** A delivery as the API shows it. */
export function toDelivery(row: DeliveryRow, labels: GroupLabels = new Map()): Delivery {
  const { dueMs, createdMs, group } = row;
  const subject = toSubject(row);
  const { eventId, entityId, metricName } = subject;
  return create(DeliverySchema, {
    id: row.id,
    rule: row.ruleName,
    trigger: row.triggerName ?? "",
    destination: row.destinationName,
    eventId: eventId === undefined ? "" : idText(eventId),
    occurrenceId: eventId === undefined ? "" : subjectId(subject),
    subject: subjectId(subject),
    entityId: entityId === undefined ? "" : idText(entityId),
    metricName: metricName ?? "",
    occasion: row.occasion,
    status: DeliveryStatus[row.status],
    attempts: attemptCount(row.attempts),
    tries: newest(row.attempts).map(({ timeMs, reason, answer, recipients = [] }) => ({
      time: timestampFromMs(timeMs),
      reason,
      answer,
      recipients: [...recipients],
    })),
    error: row.error,
    silenceId: row.silenceId ?? "",
    ...(dueMs !== null && dueMs < neverMs && { nextTryTime: timestampFromMs(dueMs) }),
    createTime: timestampFromMs(Number(createdMs)),
    ...(group && {
      groupKey: subjectId(subject),
      groupLabels: { ...labels.get(group.message) },
      memberCount: group.firing + group.resolved,
      resolvedCount: group.resolved,
    }),
  });
}

/** The condition of a waiting row that a silence holds: until it is due. */
export const heldCondition = (db: Db): Fragment =>
  db`(silence_id is not null and due_ms > (extract(epoch from statement_timestamp()) * 1000)::int8)`;

/** The condition of a row that is the message of a group with such a member. By the indexes of group_message_members. */
export const hasMember = (
  db: Db,
  tenantId: string,
  members: Fragment,
) => db`(told -> 'group' ->> 'message') = any(array(
  select message_id::text from group_message_members where tenant_id = ${tenantId} and ${members}))`;

/** The newest deliveries come first. */
export const newestFirst = (db: Db): SortKey[] => [
  { expression: db`created_ms`, type: "bigint", descending: true, required: true },
  { expression: db`id::text`, type: "text", descending: true, required: true },
];

/**
 * Reads deliveries, the newest first: those that wait by one condition, those that are done by the other. By delivery_history's
 * primary key, partition by partition; what waits is little.
 */
export function readDeliveries(
  db: Db,
  { waiting, done, limit }: { waiting: Fragment; done: Fragment; limit: number | null },
) {
  const keys = newestFirst(db);
  const newest = db`order by created_ms desc, id::text desc limit ${limit}`;
  return db<DeliveryRow[]>`
    select * from (
      (select ${deliveryColumns(db)}, case when ${heldCondition(db)} then 'HELD' else 'PENDING' end as status,
        case when ${heldCondition(db)} then silence_id end as "silenceId", due_ms::float8 as "dueMs", ${keyTexts(db, keys)} as "keyTexts",
        created_ms, id::text as id_text
        from due_deliveries where ${waiting} ${newest})
      union all
      (select ${deliveryColumns(db)}, status, null, null, ${keyTexts(db, keys)}, created_ms, id::text
        from delivery_history where ${done} ${newest})
    ) as both_kinds order by created_ms desc, id_text desc limit ${limit}`;
}
