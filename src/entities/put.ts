import { bigintArray, byteaArray, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { failpoint } from "../failpoint.ts";
import { entityId, nameFromDimensions } from "./identity.ts";

/** One model as the receiver has checked it. */
export interface ModelItem {
  timestampMs: bigint;
  dimensions: Record<string, string>;
  metadata: Record<string, unknown>;
}

const DELETED_KEY = "_svc_deleted_entity";
const MINUTE_MS = 60_000n;

interface Change {
  id: Buffer;
  model: ModelItem;
  deletes: boolean;
}

/** Of two models of one entity, whether `b`, which came later, prevails: the newer one; at the same time a deletion. */
function prevails(a: Change, b: Change): boolean {
  if (a.model.timestampMs !== b.model.timestampMs) return a.model.timestampMs < b.model.timestampMs;
  return b.deletes || !a.deletes;
}

// Applying a batch item by item ends where applying the one that prevails ends, so each entity is written once.
// Sorted by id, so that concurrent batches lock rows in one order.
function prevailing(tenantId: string, models: readonly ModelItem[]): Change[] {
  const changes = new Map<string, Change>();
  for (const model of models) {
    const change = { id: entityId(tenantId, model.dimensions), model, deletes: model.metadata[DELETED_KEY] === true };
    const key = change.id.toString("latin1");
    const other = changes.get(key);
    if (other === undefined || prevails(other, change)) changes.set(key, change);
  }
  return [...changes.values()].sort((a, b) => Buffer.compare(a.id, b.id));
}

function nameOf({ dimensions, metadata }: ModelItem): string {
  return typeof metadata.name === "string" && metadata.name !== "" ? metadata.name : nameFromDimensions(dimensions);
}

/**
 * Creates, describes, deletes and revives entities, one statement a batch. May be repeated: a model that changes
 * nothing writes nothing (liveness, and with it the model's time, move once a minute).
 */
export async function putModels(db: Db, tenantId: string, models: readonly ModelItem[], nowMs: number): Promise<void> {
  const changes = prevailing(tenantId, models);
  if (changes.length === 0) return;
  const now = BigInt(nowMs);
  failpoint("models:begun");
  await db`
    insert into entities as stored
      (tenant_id, id, name, dimensions, metadata, model_ms, created_ms, updated_ms, liveness_ms, deleted_ms)
    select ${tenantId}::uuid, id, name, dimensions, metadata, model_ms, ${now}, ${now},
      model_ms - model_ms % ${MINUTE_MS}, deleted_ms
    from unnest(
      ${byteaArray(changes.map(({ id }) => id))}::bytea[],
      ${textArray(changes.map(({ model }) => nameOf(model)))}::text[],
      ${jsonArray(changes.map(({ model }) => model.dimensions))}::jsonb[],
      ${jsonArray(changes.map(({ model }) => model.metadata))}::jsonb[],
      ${bigintArray(changes.map(({ model }) => model.timestampMs))}::bigint[],
      ${bigintArray(changes.map(({ model, deletes }) => (deletes ? model.timestampMs : null)))}::bigint[]
    ) as model (id, name, dimensions, metadata, model_ms, deleted_ms)
    on conflict (tenant_id, id) do update set
      name = case when excluded.deleted_ms is null then excluded.name else stored.name end,
      metadata = case when excluded.deleted_ms is null then excluded.metadata else stored.metadata end,
      model_ms = excluded.model_ms,
      updated_ms = case
        when excluded.deleted_ms is not null or stored.deleted_ms is not null or stored.name <> excluded.name
          or stored.metadata <> excluded.metadata
        then excluded.updated_ms else stored.updated_ms end,
      liveness_ms = greatest(stored.liveness_ms, excluded.liveness_ms),
      deleted_ms = excluded.deleted_ms
    where excluded.model_ms >= coalesce(stored.model_ms, excluded.model_ms)
      and (stored.deleted_ms is null or excluded.model_ms > stored.deleted_ms)
      and (stored.model_ms is null or stored.deleted_ms is not null or excluded.deleted_ms is not null
        or stored.liveness_ms < excluded.liveness_ms
        or stored.name <> excluded.name or stored.metadata <> excluded.metadata)`;
  failpoint("models:stored");
}

/** Data that named an entity by its dimensions, with the data's own time. */
export interface Sighting {
  id: Buffer;
  dimensions: Record<string, string>;
  timestampMs: bigint;
}

/**
 * Makes the entities of these sightings known, named after their dimensions, and moves their liveness on, to the
 * minute. A deleted entity stays deleted. One statement; may be repeated. `sightings` hold each entity once.
 */
export async function seeEntities(
  db: Db,
  tenantId: string,
  sightings: readonly Sighting[],
  nowMs: number,
): Promise<void> {
  const sorted = [...sightings].sort((a, b) => Buffer.compare(a.id, b.id));
  const now = BigInt(nowMs);
  await db`
    insert into entities as stored
      (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
    select ${tenantId}::uuid, id, name, dimensions, '{}', ${now}, ${now}, seen_ms - seen_ms % ${MINUTE_MS}
    from unnest(
      ${byteaArray(sorted.map(({ id }) => id))}::bytea[],
      ${textArray(sorted.map(({ dimensions }) => nameFromDimensions(dimensions)))}::text[],
      ${jsonArray(sorted.map(({ dimensions }) => dimensions))}::jsonb[],
      ${bigintArray(sorted.map(({ timestampMs }) => timestampMs))}::bigint[]
    ) as seen (id, name, dimensions, seen_ms)
    on conflict (tenant_id, id) do update set liveness_ms = excluded.liveness_ms
    where stored.liveness_ms < excluded.liveness_ms and stored.deleted_ms is null`;
}
