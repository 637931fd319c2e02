import type { TriggerType } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { checkClause } from "../clause/check.ts";
import { checkTrigger } from "../clause/trigger.ts";

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
