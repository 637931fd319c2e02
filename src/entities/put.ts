import type { Fragment } from "postgres";
import { bigintArray, byteaArray, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { failpoint } from "../failpoint.ts";
import { coreFacts } from "./core-properties.ts";
import { keysIn, notingKeys } from "./field-keys.ts";
import { entityId, nameFromDimensions } from "./identity.ts";
import { metadataNumber } from "./state.ts";

/** One model as the receiver has checked it. */
export interface ModelItem {
  timestampMs: bigint;
  dimensions: Record<string, string>;
  metadata: Record<string, unknown>;
}

const DELETED_KEY = "_svc_deleted_entity";
const MINUTE_MS = 60_000n;

/** Hears, inside the transaction of their write, which living entities were created, described anew or revived. */
export type OnChanged = (tx: Db, tenantId: string, ids: Buffer[]) => Promise<void>;

/** What one model does to its entity. */
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

/**
 * The changes that end where all models of a batch, one by one, end: in the first round one of each entity; in the second
 * the deletion of those that were described before it, so that it leaves them their last name and metadata. Sorted by id,
 * and the second round within the first, so that concurrent batches lock rows in one order.
 */
function roundsOf(tenantId: string, models: readonly ModelItem[]): Change[][] {
  const last = new Map<string, Change>();
  const described = new Map<string, Change>();
  for (const model of models) {
    const change = { id: entityId(tenantId, model.dimensions), model, deletes: model.metadata[DELETED_KEY] === true };
    const key = change.id.toString("latin1");
    const other = last.get(key);
    if (other !== undefined && !prevails(other, change)) continue;
    last.set(key, change);
    if (change.deletes && other !== undefined && !other.deletes) described.set(key, other);
  }
  const first = [...last].map(([key, change]) => (change.deletes ? (described.get(key) ?? change) : change));
  const second = [...last].flatMap(([key, change]) => (change.deletes && described.has(key) ? [change] : []));
  return [first, second]
    .filter((round) => round.length > 0)
    .map((round) => round.sort((a, b) => Buffer.compare(a.id, b.id)));
}

function nameOf({ dimensions, metadata }: ModelItem): string {
  return typeof metadata.name === "string" && metadata.name !== "" ? metadata.name : nameFromDimensions(dimensions);
}

/** Whether the row `sent` is not too old for the row `known`, and changes it. */
function differs(db: Db, known: Fragment, sent: Fragment): Fragment {
  return db`${sent}.model_ms >= coalesce(${known}.model_ms, ${sent}.model_ms)
    and (${known}.deleted_ms is null or ${sent}.model_ms > ${known}.deleted_ms)
    and (${known}.model_ms is null or ${known}.deleted_ms is not null or ${sent}.deleted_ms is not null
      or ${known}.liveness_ms < ${sent}.liveness_ms
      or ${known}.name <> ${sent}.name or ${known}.metadata <> ${sent}.metadata
      or ${known}.core_properties <> ${sent}.core_properties)`;
}

/** Writes one change of each entity; answers the living entities that it created, described anew or revived. */
async function write(db: Db, tenantId: string, changes: readonly Change[], nowMs: number): Promise<Buffer[]> {
  const now = BigInt(nowMs);
  // What the plain read finds unchanged is neither locked nor written; for the rest the conflict decides again.
  const rows = await db<{ id: Buffer }[]>`
    with model as (
      select id, name, dimensions, metadata, core_properties, production_state, priority, model_ms, model_ms - model_ms % ${MINUTE_MS} as liveness_ms, deleted_ms
      from unnest(
        ${byteaArray(changes.map(({ id }) => id))}::bytea[],
        ${textArray(changes.map(({ model }) => nameOf(model)))}::text[],
        ${jsonArray(changes.map(({ model }) => model.dimensions))}::jsonb[],
        ${jsonArray(changes.map(({ model }) => model.metadata))}::jsonb[],
        ${jsonArray(changes.map(({ model }) => coreFacts(tenantId, model.dimensions, model.metadata)))}::jsonb[],
        ${bigintArray(changes.map(({ model }) => metadataNumber(model.metadata, "productionState")))}::bigint[],
        ${bigintArray(changes.map(({ model }) => metadataNumber(model.metadata, "priority")))}::bigint[],
        ${bigintArray(changes.map(({ model }) => model.timestampMs))}::bigint[],
        ${bigintArray(changes.map(({ model, deletes }) => (deletes ? model.timestampMs : null)))}::bigint[]
      ) as sent (id, name, dimensions, metadata, core_properties, production_state, priority, model_ms, deleted_ms)
    ), written as (
      insert into entities as stored
        (tenant_id, id, name, dimensions, metadata, core_properties, model_production_state, priority, model_ms, created_ms,
          updated_ms, liveness_ms, deleted_ms)
      select ${tenantId}::uuid, m.id, m.name, m.dimensions, m.metadata, m.core_properties, m.production_state, m.priority,
        m.model_ms, ${now}::bigint, ${now}::bigint, m.liveness_ms, m.deleted_ms
      from model m left join entities known on known.tenant_id = ${tenantId}::uuid and known.id = m.id
      where known.id is null or ${differs(db, db`known`, db`m`)}
      on conflict (tenant_id, id) do update set
        name = case when excluded.deleted_ms is null then excluded.name else stored.name end,
        metadata = case when excluded.deleted_ms is null then excluded.metadata else stored.metadata end,
        core_properties = case when excluded.deleted_ms is null then excluded.core_properties else stored.core_properties end,
        model_production_state = case
          -- What a window has left stays until a model names another state than the one before it.
          when excluded.deleted_ms is not null
            or (stored.deleted_ms is null
              and stored.metadata -> 'productionState' is not distinct from excluded.metadata -> 'productionState')
          then stored.model_production_state else excluded.model_production_state end,
        priority = case when excluded.deleted_ms is null then excluded.priority else stored.priority end,
        model_ms = excluded.model_ms,
        updated_ms = case
          when excluded.deleted_ms is not null or stored.deleted_ms is not null or stored.name <> excluded.name
            or stored.metadata <> excluded.metadata
          then excluded.updated_ms else stored.updated_ms end,
        liveness_ms = greatest(stored.liveness_ms, excluded.liveness_ms),
        deleted_ms = excluded.deleted_ms
      where ${differs(db, db`stored`, db`excluded`)}
      returning id, updated_ms, deleted_ms
    )
    select id from written where updated_ms = ${now} and deleted_ms is null`;
  return rows.map(({ id }) => id);
}

const keysOf = (models: readonly ModelItem[]) => ({
  dimension: keysIn(models.map(({ dimensions }) => dimensions)),
  metadata: keysIn(models.map(({ metadata }) => (metadata[DELETED_KEY] === true ? {} : metadata))),
});

/**
 * Creates, describes, deletes and revives entities, one statement a batch. May be repeated: a model that changes
 * nothing writes nothing (liveness, and with it the model's time, move once a minute).
 */
export async function putModels(
  db: Db,
  tenantId: string,
  models: readonly ModelItem[],
  nowMs: number,
  onChanged?: OnChanged,
): Promise<void> {
  if (models.length === 0) return;
  const rounds = roundsOf(tenantId, models);
  await transaction(db, async (tx) => {
    failpoint("models:begun");
    await notingKeys(tx, tenantId, keysOf(models));
    const changed: Buffer[] = [];
    for (const round of rounds) changed.push(...(await write(tx, tenantId, round, nowMs)));
    failpoint("models:stored");
    if (changed.length > 0) await onChanged?.(tx, tenantId, changed);
  });
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
    with noted as (${notingKeys(db, tenantId, { dimension: keysIn(sorted.map(({ dimensions }) => dimensions)) })})
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
    where stored.liveness_ms < excluded.liveness_ms and stored.deleted_ms is null`.execute();
}
