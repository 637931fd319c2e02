import { create, fromJson, getOption, type JsonValue } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { StaleDataSourceSchema, type TriggerType, TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { field } from "#gen/buf/validate/validate_pb.ts";
import { checkClause } from "../clause/check.ts";
import { checkTrigger } from "../clause/trigger.ts";
import { labelsPredicate } from "../metrics/metric-clause.ts";
import { fieldsOf } from "./deciding/matcher/rows.ts";

/** What a trigger looks at, as it is stored: a duration that is longer than may be sent today counts as the longest. */
export function storedTriggerType(stored: JsonValue): TriggerType {
  const type = fromJson(TriggerTypeSchema, stored, { ignoreUnknownFields: true });
  const { source } = type;
  if (source.case === "staleData" && source.value.durationSec > durationSecMax)
    source.value.durationSec = durationSecMax;
  return type;
}

/** What a stored trigger looks at, and what would be refused of it today. One that cannot be read is shown as one that matches nothing. */
export function shownTriggerType(stored: JsonValue): { type: TriggerType; trouble: string } {
  let type = create(TriggerTypeSchema, { source: { case: "metricThreshold", value: {} } });
  try {
    type = storedTriggerType(stored);
    checkTriggerType(type, "type");
    return { type, trouble: "" };
  } catch (error) {
    return { type, trouble: error instanceof ConnectError ? error.rawMessage : (error as Error).message };
  }
}

const durationSecMax = longestDuration();

function longestDuration(): bigint {
  const { type } = getOption(StaleDataSourceSchema.field.durationSec, field);
  if (type.case !== "int64" || type.value.lessThan.case !== "lte") throw new Error("durationSec has no bound");
  return type.value.lessThan.value;
}

/** Which names a trigger may give a field does not depend on the tenant. */
const { events } = fieldsOf("", "");

/**
 * Checks what a trigger looks at, beyond the rules of its proto file: clauses must compile. `path` is its place in the
 * request. @throws code 3 with the path of what is wrong; code 12 for operations that clauses over labels do not know
 */
export function checkTriggerType(type: TriggerType | undefined, path: string): void {
  const source = type?.source;
  if (source?.case === "event") checkTrigger(source.value.query?.clause, `${path}.event.query.clause`, events);
  else if (source?.case !== undefined) {
    const clause = source.value.entityQuery?.clause;
    if (clause !== undefined) checkClause(clause, `${path}.${source.case}.entityQuery.clause`);
    const labels = source.case === "metricThreshold" ? source.value.metricClause : undefined;
    if (labels !== undefined) labelsPredicate(labels, `${path}.metricThreshold.metricClause`);
  }
}
