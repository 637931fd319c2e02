import { create, fromJson, type JsonValue, type Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type TriggerType, TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Pace } from "../../event-loop.ts";
import type { MatchRow, TriggerFields } from "./rows.ts";
import { eventTrigger } from "./sources/event.ts";
import { metricThreshold } from "./sources/metric-threshold.ts";
import type { Mismatch, ReadyTrigger, SourceName, TriggerSource } from "./sources/source.ts";
import { staleDataTrigger } from "./sources/stale-data.ts";

type MessageOf<S extends SourceName> = Extract<TriggerType["source"], { case: S }>["value"];

const sources: { readonly [S in SourceName]: TriggerSource<MessageOf<S>> } = {
  event: eventTrigger,
  metricThreshold,
  staleData: staleDataTrigger,
};

/** A trigger's source; undefined: this version does not know it, and the trigger matches nothing. */
function sourceOf({ source }: TriggerType) {
  if (source.case === undefined) return undefined;
  return {
    name: source.case,
    source: sources[source.case] as TriggerSource<Message>,
    message: source.value as Message,
  };
}

/**
 * Checks what a trigger looks at, beyond the rules of its proto file: clauses must compile. `path` is its place in the
 * request. @throws code 3 with the path of what is wrong; code 12 for operations that clauses over labels do not know
 */
export function checkTriggerType(type: TriggerType | undefined, path: string): void {
  const found = type && sourceOf(type);
  found?.source.check(found.message, `${path}.${found.name}`);
}

/** What a trigger looks at, as it is stored, made to fit what may be sent today. */
export function storedTriggerType(stored: JsonValue): TriggerType {
  const type = fromJson(TriggerTypeSchema, stored, { ignoreUnknownFields: true });
  const found = sourceOf(type);
  found?.source.fit?.(found.message);
  return type;
}

/** What a stored trigger looks at, and what would be refused of it today. One that cannot be read is shown as one that matches nothing. */
export function shownTriggerType(stored: JsonValue): { type: TriggerType; trouble: string } {
  let type = create(TriggerTypeSchema, { source: { case: "metricThreshold", value: {} } });
  try {
    type = storedTriggerType(stored);
    checkTriggerType(type, "type");
    return { type, trouble: doubtOf(type) };
  } catch (error) {
    return { type, trouble: error instanceof ConnectError ? error.rawMessage : (error as Error).message };
  }
}

/** Says what of a trigger that may be stored is most likely a slip; empty when nothing is. */
function doubtOf(type: TriggerType): string {
  const found = sourceOf(type);
  return found?.source.doubt?.(found.message) ?? "";
}

/** A trigger, compiled. @throws what the check of its clauses does; what is stored has been checked */
export function readyTrigger(type: TriggerType, fields: TriggerFields): ReadyTrigger {
  const found = sourceOf(type);
  return found?.source.ready(found.message, fields) ?? {};
}

/** With how many texts a trigger that is checked compares each event; none where it needs an equality, which is looked up. */
export function comparisonsOf(type: TriggerType): number {
  const found = sourceOf(type);
  return found?.source.comparisons?.(found.message) ?? 0;
}

/** What of the data a trigger looks at, as `metricData` and `eventData` name it. */
export function dataOf(type: TriggerType): readonly string[] {
  const found = sourceOf(type);
  return found?.source.data?.(found.message) ?? [];
}

/** Whether a trigger looks at occurrences. */
export const seesOccurrences = (type: TriggerType): boolean => sourceOf(type)?.source.mismatch !== undefined;

/** Why a trigger of occurrences does not match one; undefined: it does. @throws where its clause cannot be read */
export async function mismatchOf(
  type: TriggerType,
  row: MatchRow,
  values: TriggerFields["events"],
  pace: Pace,
): Promise<Mismatch | undefined> {
  const found = sourceOf(type);
  return await found?.source.mismatch?.(found.message, row, values, pace);
}
