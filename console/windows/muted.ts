import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Event } from "#gen/belfry/events/v1/event_pb.ts";
import { ActiveCriteria, EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import {
  type Delivery,
  DeliveryService,
  DeliveryStatus,
  type ExplainNotificationResponse,
  ExplainNotificationResponse_Outcome as Outcome,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { clientOf } from "../data/calls.ts";
import { calledOf } from "../events/entity-names.ts";

const rules = clientOf(RuleService);
const events = clientOf(EventQueryService);
const deliveries = clientOf(DeliveryService);

/** So far back a match without a delivery was never sent: deliveries are kept for that long at least. */
export const lookedDays = 7;
const lookedMs = lookedDays * 86_400_000;
const eventsMax = 10;
export const occurrencesMax = 5;
export const rulesMax = 10;
/** What the service says of a delivery that it has cancelled because of maintenance. */
const inMaintenance = "the entity is in maintenance";

/** What became of a notification: it waits now; it was dropped at the end of its delay; it was over before it could be sent. */
type Fate =
  | { readonly is: "held"; readonly update: boolean; readonly window: string; readonly until: Timestamp | undefined }
  | { readonly is: "dropped"; readonly sent: Timestamp | undefined }
  | { readonly is: "over" };

/** A notification of an occurrence that a rule did not send because of maintenance. */
export interface Muted {
  readonly id: string;
  readonly name: string;
  readonly entityId: string;
  readonly entityName: string;
  readonly rule: string;
  /** When it would have been sent, or what it is about began to match. */
  readonly time: Timestamp | undefined;
  readonly fate: Fate;
}

/** The rules that keep silent about entities in maintenance, by their names. */
export async function mutingRules(signal: AbortSignal): Promise<string[]> {
  const { rules: all } = await rules.listRules({ pageSize: 1000 }, { signal });
  return all.filter(({ enabled, muteDuringMaintenance }) => enabled && muteDuringMaintenance).map(({ name }) => name);
}

/** Where is looked: the same for all pages. */
export interface Look {
  readonly entityIds: readonly string[];
  readonly ruleNames: readonly string[];
  readonly sinceMs: number;
}

/** Looks back from now. */
export const lookBack = (entityIds: readonly string[], ruleNames: readonly string[]): Look => ({
  entityIds,
  ruleNames: ruleNames.slice(0, rulesMax),
  sinceMs: Date.now() - lookedMs,
});

/** What was not sent of the entities' latest occurrences, page by page. @param cursor empty for the first page */
export async function readMuted(
  { entityIds, ruleNames, sinceMs }: Look,
  cursor: string,
  signal?: AbortSignal,
): Promise<{ rows: Muted[]; next: string }> {
  if (entityIds.length === 0 || ruleNames.length === 0) return { rows: [], next: "" };
  const options = signal ? { signal } : {};
  const values = entityIds.map((id) => create(ValueSchema, { kind: { case: "stringValue", value: id } }));
  const query = {
    clause: create(ClauseSchema, { oneOf: { field: "entity", values } }),
    timeRange: { start: BigInt(sinceMs) },
    activeCriteria: ActiveCriteria.BY_OVERLAP,
    pageInput: { limit: eventsMax, cursor },
  };
  const { results, pageInfo } = await events.searchEvents({ query }, options);
  const rows: Muted[] = [];
  // One after another: of a page that stands open, a server has few questions at a time.
  for (const { id, about } of results.flatMap(latest)) {
    for (const rule of ruleNames) {
      const asked = { name: rule, about: { case: "occurrenceId", value: id } } as const;
      const kept = fateOf(await deliveries.explainNotification(asked, options), sinceMs);
      if (kept !== undefined) rows.push({ id, ...about, rule, ...kept });
    }
  }
  return { rows, next: pageInfo?.hasNext ? pageInfo.endCursor : "" };
}

function latest(event: Event) {
  const about = { name: event.name ?? "", entityId: event.entity ?? "", entityName: calledOf(event) };
  return event.occurrences.slice(0, occurrencesMax).map(({ id }) => ({ id, about }));
}

/** What a rule's explanation says of silence; undefined: it kept none. */
function fateOf(
  { outcome, steps, deliveries: made }: ExplainNotificationResponse,
  sinceMs: number,
): Pick<Muted, "time" | "fate"> | undefined {
  const match = steps.find(({ step }) => step === "match");
  const ofMatch = made.filter(({ createTime }) => msOf(createTime) >= msOf(match?.time));
  if (outcome === Outcome.MUTED) {
    const { window = "", untilTime: until } = steps.find((step) => step.window !== "") ?? {};
    return { time: match?.time, fate: { is: "held", update: ofMatch.some(wasSent), window, until } };
  }
  const dropped = made.find(({ status, error }) => status === DeliveryStatus.CANCELLED && error === inMaintenance);
  if (dropped !== undefined) {
    const sent = made.find((each) => wasSent(each) && msOf(each.createTime) > msOf(dropped.createTime))?.createTime;
    return { time: dropped.createTime, fate: { is: "dropped", sent } };
  }
  // Each match makes a delivery but in maintenance.
  const over = match?.result === "stopped" && msOf(match.time) >= sinceMs && ofMatch.length === 0;
  return over ? { time: match.time, fate: { is: "over" } } : undefined;
}

const msOf = (time: Timestamp | undefined) => (time === undefined ? 0 : timestampMs(time));
const wasSent = ({ status }: Delivery) => status === DeliveryStatus.SENT || status === DeliveryStatus.SUMMARISED;
