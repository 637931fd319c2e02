import { fromJson, getOption, type JsonValue } from "@bufbuild/protobuf";
import { StaleDataSourceSchema, type TriggerType, TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { field } from "#gen/buf/validate/validate_pb.ts";
import { checkClause } from "../clause/check.ts";
import { checkTrigger } from "../clause/trigger.ts";

/** What a trigger looks at, as it is stored: a duration that is longer than may be sent today counts as the longest. */
export function storedTriggerType(stored: JsonValue): TriggerType {
  const type = fromJson(TriggerTypeSchema, stored, { ignoreUnknownFields: true });
  const { source } = type;
  if (source.case === "staleData" && source.value.durationSec > durationSecMax)
    source.value.durationSec = durationSecMax;
  return type;
}

const durationSecMax = longestDuration();

function longestDuration(): bigint {
  const { type } = getOption(StaleDataSourceSchema.field.durationSec, field);
  if (type.case !== "int64" || type.value.lessThan.case !== "lte") throw new Error("durationSec has no bound");
  return type.value.lessThan.value;
}

/**
 * Checks what a trigger looks at, beyond the rules of its proto file: clauses must compile. `path` is its place in the
 * request. @throws code 3 with the path of what is wrong
 */
export function checkTriggerType(type: TriggerType | undefined, path: string): void {
  const source = type?.source;
  if (source?.case === "event") checkTrigger(source.value.query?.clause, `${path}.event.query.clause`);
  else if (source?.case !== undefined) {
    const clause = source.value.entityQuery?.clause;
    if (clause !== undefined) checkClause(clause, `${path}.${source.case}.entityQuery.clause`);
  }
}
