import { create } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { idText } from "../../entities/identity.ts";
import type { EntityRow } from "../../entities/messages.ts";
import { toRow } from "../../events/columns.ts";
import { toColumns } from "../../events/fields.ts";
import type { ClaimedDelivery } from "../queue/delivery-queue.ts";
import { type Notification, notifiedEvent, standInEntity } from "../subject/notification.ts";
import type { SummarySnapshot } from "../subject/snapshot.ts";
import { keyText, subjectId } from "../subject/subject.ts";
import { aboutGroup } from "../templates/group-notification.ts";
import { summaryText } from "../templates/variables.ts";
import type { DeliveryFacts, DeliveryTexts } from "./delivery-context.ts";

const summaryCharsMax = 128;

/** What a delivery reports; undefined when what it is about no longer exists. */
export function notificationOf(
  row: ClaimedDelivery,
  facts: DeliveryFacts,
  texts: DeliveryTexts,
  tenantId: string,
): Notification | undefined {
  const { told } = row;
  if (told.summary !== undefined) return summaryNotification(row, told.summary, facts, texts, tenantId);
  if (told.group !== undefined) return groupNotification(row, told.group.message, facts, texts, tenantId);
  const rule = facts.rules.get(row.ruleId);
  const entity =
    row.subject.entityId === undefined ? standInOf(row) : texts.subjects.get(keyText(row.subject.key))?.entity;
  if (rule === undefined || entity === undefined) return undefined;
  const isEvent = row.subject.eventId !== undefined;
  const event = isEvent ? eventOf(row, texts) : windowEvent(row);
  if (event === undefined && isEvent) return undefined;
  return {
    id: row.id,
    occasion: row.occasion,
    clear: row.occasion === "clear",
    timeMs: row.createdMs,
    tenant: { id: tenantId, name: facts.tenantName },
    rule: told.window === undefined ? rule : { ...rule, message: told.window.message },
    trigger: triggerOf(row, texts),
    subjectId: subjectId(row.subject),
    ...(event && { event }),
    entity: notifiedEntity(entity),
    ...(row.subject.metricName !== undefined && {
      metric: {
        name: row.subject.metricName,
        ...(told.labels !== undefined && { labels: told.labels }),
        ...(told.value !== undefined && { value: told.value }),
        ...(told.timeMs !== undefined && { timeMs: told.timeMs }),
      },
    }),
    ...causeOf(row),
  };
}

function triggerOf({ triggerNames: [name = ""], told }: ClaimedDelivery, { triggers }: DeliveryTexts) {
  return {
    name,
    type: triggers.get(name) ?? create(TriggerTypeSchema),
    ...(told.threshold !== undefined && { threshold: told.threshold }),
    ...(told.thresholdType !== undefined && { thresholdType: told.thresholdType }),
  };
}

const causeOf = ({ told: { chain = [], root } }: ClaimedDelivery) => ({ chain, ...(root !== undefined && { root }) });

/** An entity as notifications name it; without an id where something stands in for it. */
export type NamedEntity = Pick<EntityRow, "id" | "name" | "dimensions">;

/** Returns an entity as notifications have it. */
export const notifiedEntity = ({ id, name, dimensions }: NamedEntity): Notification["entity"] => ({
  id: id.length === 0 ? "" : idText(id),
  name,
  dimensions: dimensions as Record<string, string>,
});

/** A maintenance window, or a group, replaces both event and entity. */
export function standInOf({ ruleName, told: { window, group } }: ClaimedDelivery): NamedEntity | undefined {
  if (group !== undefined) return { id: Buffer.alloc(0), ...standInEntity(ruleName) };
  return window && { id: Buffer.alloc(0), name: window.name, dimensions: { window: window.id } };
}

function windowEvent({ told: { window } }: ClaimedDelivery): Notification["event"] {
  if (window === undefined) return undefined;
  const { id, name, message, what, atMs } = window;
  const summary = `Maintenance window ${name} has ${what === "start" ? "begun" : "ended"}`;
  return {
    id: "",
    name,
    type: "maintenance",
    summary: [...summary].slice(0, summaryCharsMax).join(""),
    body: message,
    metadata: { window: id },
    severity: Severity.INFO,
    status: what === "start" ? Status.OPEN : Status.CLOSED,
    acknowledged: false,
    timeMs: atMs,
    count: 1n,
  };
}

/** The scalars are those of the decision, the texts those of now. */
function eventOf({ subject, told }: ClaimedDelivery, texts: DeliveryTexts): Notification["event"] {
  const now = texts.subjects.get(keyText(subject.key))?.occurrence;
  if (now === undefined) return undefined;
  const event = notifiedEvent({ ...toRow(now.event.id, now.occurrence), ...toColumns(now.event) });
  return {
    ...event,
    severity: (told.severity ?? event.severity) as Severity,
    status: (told.status ?? event.status) as Status,
    acknowledged: told.acknowledged ?? event.acknowledged,
    timeMs: told.timeMs ?? event.timeMs,
    count: told.count === undefined ? event.count : BigInt(told.count),
  };
}

const namesMax = 5;

/** A summary, or its end: how many there are and the first five names. Its subject is its own, so that it joins no other thread. */
export function summaryNotification(
  row: ClaimedDelivery,
  { id, count, names, severity, eventId, entity }: SummarySnapshot,
  { rules, tenantName }: DeliveryFacts,
  texts: DeliveryTexts,
  tenantId: string,
): Notification | undefined {
  const rule = rules.get(row.ruleId);
  if (rule === undefined) return undefined;
  const clear = row.occasion === "clear";
  const summary = { id, count, names };
  const line = `${count} notifications: ${names.slice(0, namesMax).join(", ")}${count > namesMax ? ", …" : ""}`;
  return {
    id: row.id,
    occasion: clear ? "clear" : "first",
    clear,
    timeMs: row.createdMs,
    tenant: { id: tenantId, name: tenantName },
    rule: { ...rule, message: "" },
    trigger: triggerOf(row, texts),
    subjectId: `summary:${id}`,
    summary,
    event: {
      id: eventId,
      name: "notifications",
      type: "summary",
      summary: [...line].slice(0, summaryCharsMax).join(""),
      body: `${summaryText(summary)}. There were more than the destination takes in a minute.`,
      severity: severity as Severity,
      status: clear ? Status.CLOSED : Status.OPEN,
      acknowledged: false,
      timeMs: row.createdMs,
      count: BigInt(count),
      metadata: { count, names: [...names] },
    },
    entity,
    ...causeOf(row),
  };
}

/** The message of a group, as it was decided. */
function groupNotification(
  row: ClaimedDelivery,
  messageId: string,
  { rules, tenantName }: DeliveryFacts,
  texts: DeliveryTexts,
  tenantId: string,
): Notification | undefined {
  const rule = rules.get(row.ruleId);
  const told = texts.groups.get(messageId);
  if (rule === undefined || told === undefined) return undefined;
  const base = {
    id: row.id,
    occasion: row.occasion,
    clear: row.occasion === "clear",
    timeMs: row.createdMs,
    tenant: { id: tenantId, name: tenantName },
    rule,
    trigger: triggerOf(row, texts),
    ...causeOf(row),
  };
  return aboutGroup(base, { ...told, key: subjectId(row.subject) });
}
