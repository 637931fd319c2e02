import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Comparison } from "../clause/field.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { idText } from "./identity.ts";
import { corePropertyTerms, type Terms, termsQuery } from "./terms.ts";

/** The ids of the living entities whose parent is one of these, in their order. */
export async function childIds(db: Db, tenantId: string, ids: readonly Buffer[]): Promise<Buffer[]> {
  const queries = ids.map((id) => {
    const asked = [{ operation: Operation.OP_EQUALS, value: idText(id) } satisfies Comparison];
    const { terms } = corePropertyTerms("_svc_parent_entity_id", asked) as Terms;
    return termsQuery(tenantId, "one", terms);
  });
  // By entities_terms, once for each parent: for all of them at once PostgreSQL would read every entity.
  const rows = await db<{ id: Buffer }[]>`
    select distinct child.id
    from unnest(${textArray(queries)}::text[]) as parent (query)
    cross join lateral (
      select id from entities
      where tenant_id = ${tenantId} and deleted_ms is null
        and entity_terms(tenant_id, name, dimensions, core_properties, custom_properties) @@ parent.query::tsquery
      offset 0
    ) as child
    order by child.id`;
  return rows.map(({ id }) => id);
}
