import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { type ExplanationStep, ExplanationStepSchema } from "#gen/belfry/notifications/v1/explanation_pb.ts";
import type { Db } from "../../db/connect.ts";
import type { Pace } from "../../event-loop.ts";
import type { StoredMatch } from "../rules/match-store.ts";
import { type MatchRow, readCounts, readEntitiesOf, type TriggerFields } from "../rules/rows.ts";
import { mismatchOf, seesOccurrences, storedTriggerType } from "../rules/sources.ts";
import type { StoredTrigger } from "../rules/stored-rules.ts";
import { ruleReason } from "../rules/tenant-rules.ts";
import { chainRulesMax } from "../subject/notification.ts";
import type { Reason } from "../subject/reason.ts";

/** What steps come to, but for deliveries. */
type Result = "passed" | "stopped" | "waiting";
type More = Partial<Pick<ExplanationStep, "path" | "window" | "silenceId" | "author" | "createdBy" | "comment">> & {
  timeMs?: number | undefined;
  untilMs?: number | undefined;
};

/** A step of a rule's decision; without times and texts it has none. */
export const step = (name: string, result: string, reason: string, { timeMs, untilMs, ...more }: More = {}) =>
  create(ExplanationStepSchema, {
    step: name,
    result,
    reason,
    ...more,
    ...(timeMs !== undefined && { time: timestampFromMs(timeMs) }),
    ...(untilMs !== undefined && { untilTime: timestampFromMs(untilMs) }),
  });

/** Says in words what the stages of deciding name; of a trigger, what follows its name. */
const texts: Readonly<Record<Reason, string>> = {
  disabled: "the rule is disabled",
  noDestination: "the rule names no destination",
  statusNotNamed: "does not name status, and the occurrence is closed",
  false: "does not match",
  ownEvent: "the rule led to this event itself, so it does not start by it",
  chainTooLong: `${chainRulesMax} rules led to this event already, so no rule starts by it`,
  noRepetition: "it was decided then, and the rule does not repeat",
  closed: "it was decided then, and is not repeated: the occurrence is closed",
  acknowledged: "it was decided then, and is not repeated while it is acknowledged",
  tooEarly: "it was decided then, and is not repeated before repeatInterval has elapsed",
  unreported: "the next report repeats it",
};

/** Returns a step whose reason a stage of deciding has named. */
export const reasonStep = (name: string, result: Result, reason: Reason, more?: More) =>
  step(name, result, texts[reason], more);

/** Whether a rule notifies at all. */
export function ruleStep(rule: Parameters<typeof ruleReason>[0]) {
  const reason = ruleReason(rule);
  return reason === undefined ? step("rule", "passed", "the rule is enabled") : reasonStep("rule", "stopped", reason);
}

/** What a trigger is held against: an occurrence, or what is noted of something else. */
export interface Sighted {
  /** As triggers see it; undefined for what is no occurrence. */
  readonly row: MatchRow | undefined;
  readonly match: Pick<StoredMatch, "standing" | "triggerNames" | "value" | "valueMs"> | undefined;
}

/** Whether a trigger matches, and if not the part of its clause that is false. */
export async function triggerStep(
  { name, type }: StoredTrigger,
  { row, match }: Sighted,
  values: TriggerFields["events"],
  pace: Pace,
): Promise<ExplanationStep> {
  const says = (result: Result, what: string, more?: More) =>
    step(
      "trigger",
      result,
      name === "" ? `the rule's own condition ${what}` : `trigger ${JSON.stringify(name)} ${what}`,
      more,
    );
  const source = storedTriggerType(type);
  if (seesOccurrences(source) !== (row !== undefined)) return says("stopped", "looks at something else");
  if (row !== undefined) {
    try {
      const why = await mismatchOf(source, row, values, pace);
      if (why === undefined) return says("passed", "matches");
      const { reason, path } = why;
      const place = name === "" ? path?.replace("type.event.query.", "") : path;
      return says("stopped", texts[reason], place === undefined ? {} : { path: place });
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return says("stopped", "is stored in a form that matches nothing: see its trouble");
    }
  }
  const stands = match?.standing === true && match.triggerNames.includes(name);
  const value = match?.value === undefined ? "" : `: the value was ${match.value}`;
  return stands
    ? says("passed", `matches${value}`, { timeMs: match.valueMs })
    : says("stopped", `${texts.false}${value}`, { timeMs: match?.valueMs });
}

/** Reads what triggers may see of an occurrence: its entity, and the number of occurrences unless none of these looks at it. */
export async function readSeen(db: Db, tenantId: string, row: MatchRow, triggers?: readonly StoredTrigger[]) {
  await readEntitiesOf(db, tenantId, [row]);
  if (triggers === undefined || JSON.stringify(triggers).includes('"count"')) await readCounts(db, tenantId, [row]);
}
