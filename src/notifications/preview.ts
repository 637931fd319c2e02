import { randomUUIDv7 } from "node:crypto";
import { create, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { GetEventRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import {
  type PreviewRuleRequest,
  PreviewRuleResponseSchema,
  type RuleService,
} from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Event } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import type { Db } from "../db/connect.ts";
import { pageBytesMax } from "../db/paging/page-contents.ts";
import { eventIds, idText, nameFromDimensions } from "../entities/identity.ts";
import { invalidField, notFound } from "../errors.ts";
import { type Pace, paced } from "../event-loop.ts";
import { getEvent } from "../events/get.ts";
import { principalOf } from "../rpc/context.ts";
import type { Composed } from "./kinds/kind.ts";
import { compose } from "./kinds.ts";
import type { Notification } from "./notification.ts";
import type { World } from "./world.ts";

type Subject = Pick<Notification, "event" | "entity" | "subjectId" | "clear" | "occasion">;

const closing = (status: Status): Pick<Subject, "clear" | "occasion"> =>
  status === Status.CLOSED ? { clear: true, occasion: "clear" } : { clear: false, occasion: "first" };

/** An event that is there, as its latest occurrence stands. @throws code 5 when there is none */
async function storedEvent(db: Db, tenantId: string, id: string): Promise<Subject> {
  const { result } = await getEvent(db, tenantId, create(GetEventRequestSchema, { id }));
  const occurrence = result?.occurrences[0];
  if (result === undefined || occurrence === undefined) throw notFound("event", id);
  const { severity = Severity.DEFAULT, status = Status.DEFAULT, acknowledged = false } = occurrence;
  return {
    ...closing(status),
    subjectId: occurrence.id,
    event: {
      id: result.id,
      name: result.name ?? "",
      type: occurrence.type ?? "",
      summary: occurrence.summary ?? "",
      body: occurrence.body ?? "",
      severity,
      status,
      acknowledged,
      timeMs: Number(occurrence.lastSeen ?? 0n),
      count: occurrence.instanceCount ?? 0n,
      metadata: occurrence.metadataFields ?? {},
    },
    entity: { id: result.entity ?? "", name: result.entityName ?? "", dimensions: occurrence.dimensions },
  };
}

/** An event as agents send it, as the first of its occurrence. */
function sentEvent(tenantId: string, event: Event): Subject {
  const { name, dimensions, type, summary, body, severity, status, acknowledged = false } = event;
  const ids = eventIds(tenantId, dimensions, name);
  const id = idText(ids.eventId);
  const metadata: JsonObject = event.metadataFields ?? {};
  const timeMs = Number(event.timestamp ?? 0n);
  return {
    ...closing(status),
    subjectId: `${id}:1`,
    event: { id, name, type, summary, body, severity, status, acknowledged, timeMs, count: 1n, metadata },
    entity: { id: idText(ids.entityId), name: nameFromDimensions(dimensions), dimensions },
  };
}

interface RuleRow {
  message: string;
  enabled: boolean;
  repeat_interval_sec: bigint;
  trigger_names: string[];
  destination_names: string[];
}

/** A rule as its notifications tell of it, with the first of its triggers. @throws code 5 when there is none */
async function ruleOf(db: Db, tenantId: string, name: string): Promise<Pick<Notification, "rule" | "trigger">> {
  const [row] = await db<RuleRow[]>`
    select r.message, r.enabled, r.repeat_interval_sec,
      array(select t.trigger_name from rule_triggers t where t.tenant_id = ${tenantId} and t.rule_name = r.name
        order by t.place) as trigger_names,
      array(select d.destination_name from rule_destinations d where d.tenant_id = ${tenantId} and d.rule_name = r.name
        order by d.place) as destination_names
    from rules r where r.tenant_id = ${tenantId} and r.name = ${name}`;
  if (row === undefined) throw notFound("rule", name);
  const { message, enabled, repeat_interval_sec: repeatIntervalSec, trigger_names, destination_names } = row;
  const [first = ""] = trigger_names;
  const [trigger] = await db<{ type: JsonValue }[]>`
    select type from triggers where tenant_id = ${tenantId} and name = ${first}`;
  return {
    rule: {
      name,
      message,
      enabled,
      repeatIntervalSec,
      triggerNames: trigger_names,
      destinationNames: destination_names,
    },
    trigger: { name: first, type: fromJson(TriggerTypeSchema, trigger?.type ?? {}) },
  };
}

/** Their secrets are hidden, which no preview shows. */
async function destinationsOf(db: Db, tenantId: string, rule: string) {
  const rows = await db<{ name: string; type: JsonValue }[]>`
    select d.name, d.type
    from rule_destinations r join destinations d on d.tenant_id = r.tenant_id and d.name = r.destination_name
    where r.tenant_id = ${tenantId} and r.rule_name = ${rule} order by r.place`;
  return rows.map(({ name, type }) => ({ name, type: fromJson(DestinationTypeSchema, type) }));
}

/** @throws code 3 when they hold more than an answer may: then the rest of them is not rendered */
async function previewsOf(
  destinations: Awaited<ReturnType<typeof destinationsOf>>,
  notification: Notification,
  world: World,
  pace: Pace,
) {
  let bytes = 0;
  const previews: (Composed & { destination: string })[] = [];
  for (const { name, type } of destinations) {
    const preview = { destination: name, ...(await compose(type, notification, world, pace)) };
    for (const text of Object.values(preview)) bytes += Buffer.byteLength(text);
    if (bytes > pageBytesMax) {
      throw invalidField(
        "name",
        `names a rule whose previews hold more than ${pageBytesMax} bytes together: take a smaller event, or fewer destinations`,
      );
    }
    previews.push(preview);
  }
  return previews;
}

/** Shows what rules would send. */
export function rulePreviews(db: Db, world: World): Pick<ServiceImpl<typeof RuleService>, "previewRule"> {
  const subjectOf = async (tenantId: string, { subject }: PreviewRuleRequest) =>
    subject.case === "event"
      ? sentEvent(tenantId, subject.value)
      : await storedEvent(db, tenantId, subject.value ?? "");
  return {
    async previewRule(request, context) {
      const { tenantId, tenantName } = principalOf(context);
      const notification: Notification = {
        ...(await ruleOf(db, tenantId, request.name)),
        ...(await subjectOf(tenantId, request)),
        id: randomUUIDv7(),
        timeMs: world.nowMs(),
        tenant: { id: tenantId, name: tenantName },
        chain: [],
      };
      const pace = paced(() => context.signal.throwIfAborted(), tenantId);
      const destinations = await destinationsOf(db, tenantId, request.name);
      return create(PreviewRuleResponseSchema, { previews: await previewsOf(destinations, notification, world, pace) });
    },
  };
}
