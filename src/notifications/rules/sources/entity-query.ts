import { Operation, type Query } from "#gen/belfry/clause/v1/clause_pb.ts";
import { checkClause } from "../../../clause/check.ts";
import { askedOf } from "../../../clause/checked.ts";
import { expressionTrouble } from "../../../clause/expression.ts";
import { predicateOf } from "../../../clause/to-predicate.ts";
import type { TriggerFields } from "../rows.ts";
import type { ReadyTrigger } from "./source.ts";

/** The entities whose data count. Left out: all. */
interface OfEntities {
  entityQuery?: Query;
}

/** @throws code 3 with the path of what is wrong */
export function checkEntityQuery({ entityQuery }: OfEntities, path: string): void {
  if (entityQuery?.clause !== undefined) checkClause(entityQuery.clause, `${path}.entityQuery.clause`);
}

/** Says which values its expressions leave undecided; empty: none. */
export function entityQueryTrouble({ entityQuery }: OfEntities): string {
  if (entityQuery?.clause === undefined) return "";
  for (const { asks, path } of askedOf(checkClause(entityQuery.clause, "entityQuery.clause", "match"))) {
    const only = asks === "exists" ? undefined : asks[0];
    const trouble = only?.operation === Operation.OP_REGEX ? expressionTrouble(only.value.expression) : "";
    if (trouble !== "") return `${path}: ${trouble}`;
  }
  return "";
}

/** Whether it means an entity, as it does one that is undecided; undefined: it means all. @throws where its clause cannot be read */
export function meansOf({ entityQuery }: OfEntities, { entities }: TriggerFields): ReadyTrigger["means"] {
  if (entityQuery?.clause === undefined) return undefined;
  const matches = predicateOf(checkClause(entityQuery.clause, "clause", "match"), entities);
  return (entity, pace) => {
    const answer = matches(entity, pace);
    return answer instanceof Promise ? answer.then((found) => found !== false) : answer !== false;
  };
}
