import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { planWithoutValues } from "../db/plans.ts";
import { idText } from "./identity.ts";

/**
 * The ids of the living entities whose parent is one of these, in their order, in the caller's transaction. Reads the index
 * `entities_by_parents`.
 */
export async function childIds(tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<Buffer[]> {
  planWithoutValues(tx);
  const parents = tx`coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id')`;
  const asked = tx`${parents} ?| ${textArray(ids.map(idText))}::text[]`;
  // Asked twice: where nothing is known of the tenant, PostgreSQL takes a thousandth of all entities for its children, and a
  // thousandth of these is too few to read all of the tenant's beside the index. Not asked whether they live: see the index.
  const rows = await tx<{ id: Buffer; living: boolean }[]>`
    select id, deleted_ms is null as living from entities
    where tenant_id = ${tenantId} and ${parents} is not null and ${asked} and ${asked}
    order by id`;
  return rows.flatMap(({ id, living }) => (living ? [id] : []));
}
