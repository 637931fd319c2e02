import type { Query } from "#gen/belfry/clause/v1/clause_pb.ts";
import { checkClause } from "../../clause/check.ts";
import { predicateOf } from "../../clause/to-predicate.ts";
import type { Fields } from "../deciding/matcher/rows.ts";
import type { ReadyTrigger } from "./source.ts";

/** The entities whose data count. Left out: all. */
interface OfEntities {
  entityQuery?: Query;
}

/** @throws code 3 with the path of what is wrong */
export function checkEntityQuery({ entityQuery }: OfEntities, path: string): void {
  if (entityQuery?.clause !== undefined) checkClause(entityQuery.clause, `${path}.entityQuery.clause`);
}

/** Whether it means an entity, as it does one that is undecided; undefined: it means all. @throws where its clause cannot be read */
export function meansOf({ entityQuery }: OfEntities, { entities }: Fields): ReadyTrigger["means"] {
  if (entityQuery?.clause === undefined) return undefined;
  const matches = predicateOf(checkClause(entityQuery.clause, "clause", "match"), entities);
  return (entity, pace) => {
    const answer = matches(entity, pace);
    return answer instanceof Promise ? answer.then((found) => found !== false) : answer !== false;
  };
}
