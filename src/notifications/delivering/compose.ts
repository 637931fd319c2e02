import { create } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { idText } from "../../entities/identity.ts";
import type { Notification } from "../notification.ts";
import { type DeliveryContext, type EntityContext, occurrenceKey } from "./delivery-context.ts";
import type { DueDelivery } from "./delivery-queue.ts";

/** What a delivery reports; undefined when what it is about no longer exists. */
export function notificationOf(row: DueDelivery, facts: DeliveryContext, tenantId: string): Notification | undefined {
  const { told } = row;
  const rule = facts.rules.get(row.ruleId);
  const entity = row.entityId === null ? windowEntity(row) : facts.entities.get(row.entityId.toString("hex"));
  if (rule === undefined || entity === undefined) return undefined;
  const [triggerName = ""] = row.triggerNames;
  const event = row.eventId === null ? windowEvent(row) : eventOf(row, facts);
  if (event === undefined && row.eventId !== null) return undefined;
  return {
    id: row.id,
    occasion: row.occasion,
    clear: row.occasion === "clear",
    timeMs: row.createdMs,
    tenant: { id: tenantId, name: facts.tenantName },
    rule: told.window === undefined ? rule : { ...rule, message: told.window.message },
    trigger: {
      name: triggerName,
      type: facts.triggers.get(triggerName) ?? create(TriggerTypeSchema),
      ...(told.threshold !== undefined && { threshold: told.threshold }),
      ...(told.thresholdType !== undefined && { thresholdType: told.thresholdType }),
    },
    subjectId: subjectId(row),
    ...(event && { event }),
    entity: { id: entity.id.length === 0 ? "" : idText(entity.id), name: entity.name, dimensions: entity.dimensions },
    ...(row.metricName !== null && {
      metric: {
        name: row.metricName,
        ...(told.labels !== undefined && { labels: told.labels }),
        ...(told.value !== undefined && { value: told.value }),
        ...(told.timeMs !== undefined && { timeMs: told.timeMs }),
      },
    }),
    chain: told.chain ?? [],
    ...(told.root !== undefined && { root: told.root }),
  };
}

/** The id of the occurrence, or what stands for it with another source. */
export function subjectId({ eventId, number, subject }: Pick<DueDelivery, "eventId" | "number" | "subject">): string {
  return eventId === null ? subject.toString("base64url") : `${idText(eventId)}:${number}`;
}

/** A maintenance window replaces both event and entity. */
function windowEntity({ told: { window } }: DueDelivery): EntityContext | undefined {
  return window && { id: Buffer.alloc(0), name: window.name, dimensions: { window: window.id } };
}

function windowEvent({ told: { window } }: DueDelivery): Notification["event"] {
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
function eventOf({ eventId, number, told }: DueDelivery, facts: DeliveryContext): Notification["event"] {
  if (eventId === null || number === null) return undefined;
  const now = facts.occurrences.get(occurrenceKey(eventId, number));
  if (now === undefined) return undefined;
  const { name, type, summary, body, metadata, dedupKey, expiresMs } = now;
  return {
    id: idText(eventId),
    name,
    type,
    summary,
    body,
    metadata,
    severity: (told.severity ?? now.severity) as Severity,
    status: (told.status ?? now.status) as Status,
    acknowledged: told.acknowledged ?? now.acknowledged,
    timeMs: told.timeMs ?? now.lastSeenMs,
    count: told.count === undefined ? now.count : BigInt(told.count),
    ...(dedupKey !== null && { dedupKey }),
    ...(expiresMs !== null && { expiresMs }),
  };
}

const namesMax = 5;
const summaryCharsMax = 128;

/**
 * One notification for all: how many there are and the first five names, under the id of the first and about a subject of
 * its own, so that it joins no thread.
 */
export function summedUp(all: readonly [Notification, ...Notification[]], count: number): Notification {
  const { metric: _, ...first } = all[0];
  const names = [...new Set(all.map(({ event, metric, entity }) => event?.name ?? metric?.name ?? entity.name))];
  const shown = names.slice(0, namesMax).join(", ");
  const text = `${count} notifications: ${shown}${count > namesMax ? ", …" : ""}`;
  const events = all.flatMap(({ event }) => event ?? []);
  return {
    ...first,
    occasion: "first",
    clear: false,
    rule: { ...first.rule, message: "" },
    subjectId: `summary:${first.id}`,
    event: {
      id: first.event?.id ?? "",
      name: "notifications",
      type: "summary",
      summary: [...text].slice(0, summaryCharsMax).join(""),
      body: `${text}. There were more than the destination takes in a minute.`,
      severity: Math.max(0, ...events.map(({ severity }) => severity)) as Severity,
      status: first.event?.status ?? Status.OPEN,
      acknowledged: false,
      timeMs: first.timeMs,
      count: BigInt(count),
      metadata: { count, names: names.slice(0, namesMax) },
    },
  };
}
