import type { Query } from "#gen/belfry/clause/v1/clause_pb.ts";
import { checkClause } from "../../clause/check.ts";
import { toPredicate } from "../../clause/to-predicate.ts";
import type { Fields } from "../deciding/matcher/rows.ts";

/** The entities whose data count. Left out: all. */
interface OfEntities {
  entityQuery?: Query;
}

/** @throws code 3 with the path of what is wrong */
export function checkEntityQuery({ entityQuery }: OfEntities, path: string): void {
  if (entityQuery?.clause !== undefined) checkClause(entityQuery.clause, `${path}.entityQuery.clause`);
}

/** Whether it means an entity; undefined: it means all. @throws where its clause cannot be read */
export const meansOf = ({ entityQuery }: OfEntities, { entities }: Fields) =>
  entityQuery?.clause && toPredicate(entityQuery.clause, "clause", entities);
