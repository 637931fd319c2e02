import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { type ExplanationStep, ExplanationStepSchema } from "#gen/belfry/notifications/v1/explanation_pb.ts";
import type { Db } from "../../db/connect.ts";
import type { Pace } from "../../event-loop.ts";
import type { StoredMatch } from "../rules/match-store.ts";
import { type Fields, type MatchRow, readCounts, readEntitiesOf } from "../rules/rows.ts";
import { mismatchOf, seesOccurrences, storedTriggerType } from "../rules/sources.ts";
import type { StoredTrigger } from "../rules/stored-rules.ts";

/** What steps come to, but for deliveries. */
export type Result = "passed" | "stopped" | "waiting";
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

/** Whether a rule notifies at all. */
export function ruleStep({ enabled, destinationNames }: { enabled: boolean; destinationNames: readonly string[] }) {
  if (!enabled) return step("rule", "stopped", "the rule is disabled");
  if (destinationNames.length === 0) return step("rule", "stopped", "the rule names no destination");
  return step("rule", "passed", "the rule is enabled");
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
  values: Fields["events"],
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
      const { what, path } = why;
      const place = name === "" ? path?.replace("type.event.query.", "") : path;
      return says("stopped", what, place === undefined ? {} : { path: place });
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return says("stopped", "is stored in a form that matches nothing: see its trouble");
    }
  }
  const stands = match?.standing === true && match.triggerNames.includes(name);
  const value = match?.value === undefined ? "" : `: the value was ${match.value}`;
  return stands
    ? says("passed", `matches${value}`, { timeMs: match.valueMs })
    : says("stopped", `does not match${value}`, { timeMs: match?.valueMs });
}

/** Reads what triggers may see of an occurrence: its entity, and the number of occurrences unless none of these looks at it. */
export async function readSeen(db: Db, tenantId: string, row: MatchRow, triggers?: readonly StoredTrigger[]) {
  await readEntitiesOf(db, tenantId, [row]);
  if (triggers === undefined || JSON.stringify(triggers).includes('"count"')) await readCounts(db, tenantId, [row]);
}
