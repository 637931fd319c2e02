import type { Db } from "../db/connect.ts";
import { unbounded } from "./bounds.ts";
import { entityCache } from "./entity-cache.ts";
import { entityId } from "./identity.ts";
import { DELETED_KEY, putModels } from "./put.ts";

/** The entity that a resource of OpenTelemetry was to versions before 0.3.0. */
export interface EarlierIdentity {
  readonly dimensions: Record<string, string>;
  /** An attribute of the resource that is a dimension now; of an entity stored under the earlier identity it is among the metadata. */
  readonly key: string | undefined;
}

/** Tells whether a tenant's entity is stored under its earlier identity, which it keeps. */
export async function keepsIdentity(db: Db, tenantId: string, { dimensions, key }: EarlierIdentity): Promise<boolean> {
  const rows = await db`
    select from entities
    where tenant_id = ${tenantId} and id = ${entityId(tenantId, dimensions)} and deleted_ms is null
      and (${key ?? null}::text is null or (metadata ? ${key ?? ""}::text
        and coalesce(metadata ->> 'service.name', '') not like 'unknown_service%'))`;
  return rows.length > 0;
}

/** Servers remember for less than this that an entity keeps its identity: what they still say of it is older than its deletion. */
const aheadMs = 60_000;
const portion = 1000;

/**
 * Deletes a tenant's entities that are stored under their earlier identity, so that their data make those of today's. Series and
 * events of them stay readable. Returns how many there were. May be repeated.
 */
export async function reidentifyEntities(db: Db, tenantId: string): Promise<number> {
  let count = 0;
  for (let after: Buffer = Buffer.alloc(0); ; ) {
    const rows = await db<{ id: Buffer; dimensions: Record<string, string>; nowMs: number }[]>`
      select id, dimensions, floor(extract(epoch from statement_timestamp()) * 1000)::float8 as "nowMs" from entities
      where tenant_id = ${tenantId} and id > ${after} and deleted_ms is null and (
        dimensions - array['k8s.pod.uid', 'container.id', 'host.id', 'host.name'] = '{}' and metadata ? 'service.name'
          and metadata ->> 'service.name' not like 'unknown_service%'
          and (select count(*) from jsonb_object_keys(dimensions)) = 1
        or dimensions - 'service.name' = '{}' and metadata ? 'service.namespace'
          and dimensions ->> 'service.name' not like 'unknown_service%'
        or dimensions - array['service.instance.id', 'service.name', 'service.namespace'] = '{}'
          and dimensions ? 'service.instance.id' and dimensions ->> 'service.name' like 'unknown_service%'
      )
      order by id limit ${portion}`;
    const last = rows.at(-1);
    if (last === undefined) return count;
    const models = rows.map(({ dimensions }) => ({
      timestampMs: BigInt(last.nowMs + aheadMs),
      dimensions,
      metadata: { [DELETED_KEY]: true },
    }));
    await putModels(db, tenantId, models, last.nowMs, undefined, entityCache(), unbounded);
    count += rows.length;
    after = last.id;
  }
}
