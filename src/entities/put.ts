import { hash } from "node:crypto";
import type { Fragment } from "postgres";
import { bigintArray, byteaArray, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { transaction } from "../db/transaction.ts";
import { failpoint } from "../failpoint.ts";
import { addToCount, readCount } from "../tenants/usage-counters.ts";
import { type EntityBounds, tooManyEntities } from "./bounds.ts";
import { coreFacts } from "./core-properties.ts";
import type { EntityCache } from "./entity-cache.ts";
import { keysIn, noteNewKeys } from "./field-keys.ts";
import { entityId, isBlank, nameFromDimensions } from "./identity.ts";
import { metadataNumber } from "./production-state.ts";
import { storedRow } from "./stored-row.ts";

/** One model as the receiver has checked it. */
export interface ModelItem {
  timestampMs: bigint;
  dimensions: Record<string, string>;
  metadata: Record<string, unknown>;
}

/** The metadata key that, true, deletes an entity. */
export const DELETED_KEY = "_svc_deleted_entity";
const MINUTE_MS = 60_000n;
const nothing = Buffer.alloc(0);

/** Called inside the transaction of their write with the living entities that were created, described again or revived. */
export type OnChanged = (tx: Db, tenantId: string, ids: Buffer[]) => Promise<void>;

/** What one model does to its entity. */
interface ModelWrite {
  id: Buffer;
  model: ModelItem;
  deletes: boolean;
  /** Digest of what the model says; nothing of a deletion. */
  content: Buffer;
}

/** Of two models of one entity, whether `b`, which came later, prevails: the newer one; at the same time a deletion. */
function prevails(a: ModelWrite, b: ModelWrite): boolean {
  if (a.model.timestampMs !== b.model.timestampMs) return a.model.timestampMs < b.model.timestampMs;
  return b.deletes || !a.deletes;
}

/**
 * The changes that end where all models of a batch, one by one, end: in the first round one of each entity; in the second
 * the deletion of those that were described before it, so that it leaves them their last name and metadata. Sorted by id,
 * and the second round within the first, so that concurrent batches lock rows in one order.
 */
function roundsOf(tenantId: string, models: readonly ModelItem[]): ModelWrite[][] {
  const last = new Map<string, ModelWrite>();
  const described = new Map<string, ModelWrite>();
  for (const model of models) {
    const deletes = model.metadata[DELETED_KEY] === true;
    const content = deletes ? nothing : contentHash(model.metadata);
    const change = { id: entityId(tenantId, model.dimensions), model, deletes, content };
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
  return typeof metadata.name === "string" && !isBlank(metadata.name) ? metadata.name : nameFromDimensions(dimensions);
}

/** Whether the row `sent` is not too old for the row `known`, and changes it. */
function differs(db: Db, known: Fragment, sent: Fragment): Fragment {
  return db`${sent}.model_ms >= coalesce(${known}.model_ms, ${sent}.model_ms)
    and (${known}.deleted_ms is null or ${sent}.model_ms > ${known}.deleted_ms)
    and (${known}.model_ms is null or ${known}.deleted_ms is not null or ${sent}.deleted_ms is not null
      or ${known}.model_ms < ${sent}.model_ms
      or ${known}.content_hash is distinct from ${sent}.content_hash)`;
}

/** What is stored of an entity, as it was when it was read without a lock. */
interface Stored {
  id: Buffer;
  content_hash: Buffer | null;
  model_ms: bigint | null;
  deleted_ms: bigint | null;
}

const minuteOf = ({ model }: ModelWrite) => model.timestampMs - (model.timestampMs % MINUTE_MS);

/** What a change asks for of an entity that is stored: nothing, that its times move on, or that it is written again. */
function needOf(change: ModelWrite, stored: Stored | undefined): "nothing" | "times" | "content" {
  if (stored === undefined) return "content";
  const { timestampMs } = change.model;
  if (timestampMs < (stored.model_ms ?? timestampMs)) return "nothing";
  if (stored.deleted_ms !== null) return timestampMs > stored.deleted_ms ? "content" : "nothing";
  if (change.deletes || stored.model_ms === null || !stored.content_hash?.equals(change.content)) return "content";
  return stored.model_ms < timestampMs ? "times" : "nothing";
}

/** What a round has done. */
interface Round {
  /** Living entities that it created, described again or revived. */
  changed: readonly Buffer[];
  /** Entities that it did not make, because they would be too many. */
  refused: readonly Buffer[];
}

/**
 * Applies one change of each entity. What is read without a lock is all that unchanged entities cost; what is written is
 * judged again under its lock.
 */
async function applyRound(
  tx: Db,
  tenantId: string,
  changes: readonly ModelWrite[],
  nowMs: number,
  { entitiesMax }: EntityBounds,
): Promise<Round> {
  const rows = await tx<Stored[]>`
    select id, content_hash, model_ms, deleted_ms from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(changes.map(({ id }) => id))}::bytea[])`;
  const found = new Map(rows.map((row) => [row.id.toString("latin1"), row]));
  const times: ModelWrite[] = [];
  const described: ModelWrite[] = [];
  const made: ModelWrite[] = [];
  for (const change of changes) {
    const stored = found.get(change.id.toString("latin1"));
    const need = needOf(change, stored);
    if (need === "times") times.push(change);
    else if (need === "content") (stored === undefined ? made : described).push(change);
  }
  const room = made.length === 0 ? 0 : entitiesMax - (await readCount(tx, tenantId, "entities"));
  const refused = made.splice(Math.max(0, room));
  // Those that are there before those that are made: the order of locks (src/events/lock.ts).
  if (times.length > 0 && described.length > 0) await lock(tx, tenantId, [...times, ...described]);
  const moved = times.length > 0 ? await moveTimes(tx, tenantId, times) : [];
  // Of the others some have been described otherwise since they were read.
  const left = moved.length < times.length ? without(times, moved) : [];
  const sent = [...left, ...described, ...made];
  const written = sent.length > 0 ? await write(tx, tenantId, sent, nowMs) : [];
  await addToCount(tx, tenantId, "entities", written.filter((row) => row.made).length, entitiesMax);
  const changed = written.flatMap((row) => (row.changed ? [row.id] : []));
  return { changed, refused: refused.map(({ id }) => id) };
}

function without(changes: readonly ModelWrite[], rows: readonly { id: Buffer }[]): ModelWrite[] {
  const ids = new Set(rows.map(({ id }) => id.toString("latin1")));
  return changes.filter(({ id }) => !ids.has(id.toString("latin1")));
}

const lock = (tx: Db, tenantId: string, changes: readonly ModelWrite[]) =>
  tx`
    select from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(changes.map(({ id }) => id))}::bytea[])
    order by id for no key update`.execute();

/** As an insert, whose conflicts only the key's index can find (design/statements), of rows that are there: it makes none. */
const moveTimes = (tx: Db, tenantId: string, changes: readonly ModelWrite[]) =>
  tx<{ id: Buffer }[]>`
    insert into entities as stored
      (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, content_hash, liveness_ms, model_ms)
    select home.tenant_id, sent.id, name, dimensions, metadata, created_ms, updated_ms, sent.content_hash, minute_ms, sent.model_ms
    from ${home(tx, tenantId)}, unnest(
      ${byteaArray(changes.map(({ id }) => id))}::bytea[],
      ${bigintArray(changes.map(minuteOf))}::bigint[],
      ${bigintArray(changes.map(({ model }) => model.timestampMs))}::bigint[],
      ${byteaArray(changes.map(({ content }) => content))}::bytea[]
    ) as sent (id, minute_ms, model_ms, content_hash)
      ${storedRow(tx, tenantId)}
    on conflict (tenant_id, id) do update
      set liveness_ms = greatest(stored.liveness_ms, excluded.liveness_ms), model_ms = excluded.model_ms
      where stored.deleted_ms is null and stored.model_ms < excluded.model_ms
        and stored.content_hash = excluded.content_hash
    returning id`.execute();

interface Written {
  id: Buffer;
  /** There was no row of it. */
  made: boolean;
  /** It lives, and was created, described again or revived. */
  changed: boolean;
}

/** Writes one change of each entity. */
async function write(db: Db, tenantId: string, changes: readonly ModelWrite[], nowMs: number): Promise<Written[]> {
  const now = BigInt(nowMs);
  return await db<Written[]>`
      insert into entities as stored
        (tenant_id, id, name, dimensions, metadata, core_properties, model_production_state, priority, content_hash, model_ms,
          created_ms, updated_ms, liveness_ms, deleted_ms)
      select home.tenant_id, m.id, m.name, m.dimensions, m.metadata, m.core_properties, m.production_state, m.priority,
        m.content_hash, m.model_ms, ${now}::bigint, ${now}::bigint, m.model_ms - m.model_ms % ${MINUTE_MS}, m.deleted_ms
      from ${home(db, tenantId)}, unnest(
        ${byteaArray(changes.map(({ id }) => id))}::bytea[],
        ${textArray(changes.map(({ model }) => nameOf(model)))}::text[],
        ${jsonArray(changes.map(({ model }) => model.dimensions))}::jsonb[],
        ${jsonArray(changes.map(({ model }) => model.metadata))}::jsonb[],
        ${jsonArray(changes.map(({ model }) => coreFacts(tenantId, model.dimensions, model.metadata)))}::jsonb[],
        ${bigintArray(changes.map(({ model }) => metadataNumber(model.metadata, "productionState")))}::bigint[],
        ${bigintArray(changes.map(({ model }) => metadataNumber(model.metadata, "priority")))}::bigint[],
        ${byteaArray(changes.map(({ content }) => content))}::bytea[],
        ${bigintArray(changes.map(({ model }) => model.timestampMs))}::bigint[],
        ${bigintArray(changes.map(({ model, deletes }) => (deletes ? model.timestampMs : null)))}::bigint[]
      ) as m (id, name, dimensions, metadata, core_properties, production_state, priority, content_hash, model_ms, deleted_ms)
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
        content_hash = case when excluded.deleted_ms is null then excluded.content_hash else stored.content_hash end,
        model_ms = excluded.model_ms,
        updated_ms = case
          when excluded.deleted_ms is not null or stored.deleted_ms is not null or stored.name <> excluded.name
            or stored.metadata <> excluded.metadata or stored.content_hash is null
          then excluded.updated_ms else stored.updated_ms end,
        liveness_ms = greatest(stored.liveness_ms, excluded.liveness_ms),
        deleted_ms = excluded.deleted_ms,
        idle = null
      where ${differs(db, db`stored`, db`excluded`)}
      returning id, stored.xmax::text = '0' as made, updated_ms = ${now} and deleted_ms is null as changed`;
}

const keysOf = (models: readonly ModelItem[]) => ({
  dimension: keysIn(models.map(({ dimensions }) => dimensions)),
  metadata: keysIn(models.map(({ metadata }) => (metadata[DELETED_KEY] === true ? {} : metadata))),
});

/**
 * Creates, describes, deletes and revives entities. May be repeated: the same model again locks and writes nothing. A newer one
 * that says the same moves the times alone, so that an older one which comes later is known to be older. Returns the places of the models that were not stored, because
 * the tenant would have too many entities, and that reason.
 */
export async function putModels(
  db: Db,
  tenantId: string,
  models: readonly ModelItem[],
  nowMs: number,
  onChanged: OnChanged | undefined,
  known: EntityCache,
  bounds: EntityBounds,
): Promise<Map<number, string>> {
  if (models.length === 0) return new Map();
  const rounds = roundsOf(tenantId, models);
  return await transaction(db, async (tx) => {
    failpoint("models:begun");
    await noteNewKeys(tx, tenantId, keysOf(models), known, bounds.fieldsMax);
    const changed: Buffer[] = [];
    const refused = new Set<string>();
    for (const round of rounds) {
      const allowed = round.filter(({ id }) => !refused.has(id.toString("latin1")));
      const done = await applyRound(tx, tenantId, allowed, nowMs, bounds);
      changed.push(...done.changed);
      for (const id of done.refused) refused.add(id.toString("latin1"));
    }
    failpoint("models:stored");
    if (changed.length > 0) await onChanged?.(tx, tenantId, changed);
    if (refused.size === 0) return new Map();
    const places = models.flatMap(({ dimensions }, i) =>
      refused.has(entityId(tenantId, dimensions).toString("latin1")) ? [i] : [],
    );
    return new Map(places.map((i) => [i, tooManyEntities(bounds)]));
  });
}

/** Rises when what is stored of the same model changes, so that known entities are written once more. */
const contentVersion = "1";

/** What a model says of its entity, as 16 bytes: its metadata, whatever the order of their keys. */
function contentHash(metadata: Record<string, unknown>): Buffer {
  return hash("sha256", contentVersion + canonical(metadata), "buffer").subarray(0, 16);
}

function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  const object = value as Record<string, unknown>;
  const keys = Object.keys(object);
  if (keys.length > 1) keys.sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(object[key])}`).join()}}`;
}
