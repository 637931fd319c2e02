import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { idText } from "./identity.ts";

/** The ids of the living entities whose parent is one of these, in their order. Reads the index `entities_parents`. */
export async function childIds(db: Db, tenantId: string, ids: readonly Buffer[]): Promise<Buffer[]> {
  const parents = db`coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id')`;
  const rows = await db<{ id: Buffer }[]>`
    select id from entities
    where tenant_id = ${tenantId} and deleted_ms is null and ${parents} is not null
      and ${parents} ?| ${textArray(ids.map(idText))}::text[]
    order by id`;
  return rows.map(({ id }) => id);
}
