import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Event, Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQuerySchema, EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { clientOf } from "../../data/calls.ts";
import { calledOf } from "../../events/entity-names.ts";

const triggers = clientOf(TriggerService);
const events = clientOf(EventQueryService);

/** Triggers whose events are looked for, and events that are offered. */
const askedMax = 5;
export const offeredMax = 50;

/** An occurrence that a message can be shown for. */
export interface Subject {
  readonly id: string;
  readonly name: string;
  readonly entityName: string;
  readonly severity: Severity | undefined;
  readonly lastSeen: bigint;
}

export interface Subjects {
  readonly found: readonly Subject[];
  /** How they were found: what the conditions match, what bears the name, or whatever came last, also since the conditions match nothing. */
  readonly by: "conditions" | "name" | "none match" | "time";
}

const subjectsOf = (all: readonly Event[]): Subject[] =>
  all.flatMap((event) => {
    const [latest] = event.occurrences;
    if (latest === undefined) return [];
    const { id, severity, lastSeen = 0n } = latest;
    return [{ id, name: event.name ?? "", entityName: calledOf(event), severity, lastSeen }];
  });

/** What a rule looks for. */
export type Conditions = Pick<Rule, "matchers" | "triggerNames">;

/** Events to show a message for: those of a name, else what the conditions would have matched, else the latest. */
export async function findSubjects(
  { matchers, triggerNames }: Conditions,
  name: string,
  signal: AbortSignal,
): Promise<Subjects> {
  if (name !== "") {
    const value = { kind: { case: "stringValue" as const, value: name } };
    const filter = { field: "name", operation: Operation.OP_CONTAINS, value };
    return { found: await latest({ filter }, signal), by: "name" };
  }
  const matched = await Promise.all([
    ...(matchers.length > 0 ? [matchedByLabels(matchers, signal)] : []),
    ...triggerNames.slice(0, askedMax).map((each) => matchedBy(each, signal)),
  ]);
  const byId = new Map(subjectsOf(matched.flat()).map((each) => [each.id, each]));
  const found = [...byId.values()].sort((a, b) => Number(b.lastSeen - a.lastSeen)).slice(0, offeredMax);
  if (found.length > 0) return { found, by: "conditions" };
  return { found: await latest(undefined, signal), by: matched.length > 0 ? "none match" : "time" };
}

async function latest(clause: { filter: object } | undefined, signal: AbortSignal): Promise<Subject[]> {
  const query = create(EventQuerySchema, { pageInput: { limit: offeredMax }, ...(clause && { clause }) });
  return subjectsOf((await events.searchEvents({ query }, { signal })).results);
}

/** What a trigger on events would have matched in the last day. */
async function matchedBy(name: string, signal: AbortSignal): Promise<readonly Event[]> {
  const { trigger } = await triggers.getTrigger({ name }, { signal });
  if (trigger?.type?.source.case !== "event") return [];
  return (await triggers.previewTrigger({ type: trigger.type }, { signal })).events;
}

/** What matchers would have matched in the last day; nothing while one of them is half typed. */
async function matchedByLabels(matchers: readonly string[], signal: AbortSignal): Promise<readonly Event[]> {
  const source = { case: "event" as const, value: { query: { matchers: [...matchers] } } };
  try {
    return (await triggers.previewTrigger({ type: { source } }, { signal })).events;
  } catch (error) {
    if (ConnectError.from(error).code === Code.InvalidArgument) return [];
    throw error;
  }
}
