import type { Config } from "../config/settings.ts";
import { bigintArray, byteaArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { again, transaction } from "../db/transaction.ts";
import { type EntityBounds, tooManyEntities } from "../entities/bounds.ts";
import type { EntityCache } from "../entities/entity-cache.ts";
import { type Sighting, touchEntities } from "../entities/touch.ts";
import { failpoint } from "../failpoint.ts";
import { addToCount } from "../tenants/usage-counters.ts";
import { applyAll, instanceKey, type Sent, type SentInstance } from "./apply.ts";
import type { StoreChanges } from "./changes.ts";
import { type StoredOccurrence, toOccurrence } from "./columns.ts";
import { type EventIdentity, type EventTexts, identityOf, textArrays, textColumns } from "./fields.ts";
import type { Instance } from "./lifecycle.ts";
import { lockSentEvents } from "./lock.ts";
import { storedColumns } from "./rows.ts";

/** One event record as the receiver has checked it. */
export interface EventItem extends SentInstance, EventTexts {
  dimensions: Record<string, string>;
}

/** An event of the batch, with what the batch sent of it, in order. */
interface Subject extends EventIdentity, Sent {
  key: string;
}

/** An instance that is no newer than the last sight of its event. */
interface Late {
  subject: Subject;
  instance: Instance;
}

/** Violation of a foreign key. */
const NO_ENTITY = "23503";

const bytesKey = (id: Buffer) => id.toString("latin1");

function gather(tenantId: string, items: readonly EventItem[], nowMs: number) {
  const subjects = new Map<string, Subject>();
  const sightings = new Map<string, Sighting>();
  for (const item of items) {
    const { dimensions } = item;
    const identity = identityOf(tenantId, dimensions, item);
    const { id, entityId } = identity;
    const timestampMs = item.onlyKeepsOpen ? BigInt(nowMs) : item.timeMs;
    const key = bytesKey(id);
    const subject = subjects.get(key);
    if (subject !== undefined) subject.instances.push(item);
    else subjects.set(key, { key, ...identity, instances: [item], history: [] });
    const entityKey = bytesKey(entityId);
    const sighting = sightings.get(entityKey);
    if (sighting === undefined) {
      sightings.set(entityKey, { id: entityId, dimensions, timestampMs });
    } else if (sighting.timestampMs < timestampMs) {
      sighting.timestampMs = timestampMs;
    }
  }
  // One order for all batches, so that concurrent ones wait for each other instead of deadlocking.
  const sorted = [...subjects.values()].sort((a, b) => Buffer.compare(a.id, b.id));
  return { subjects: sorted, sightings: [...sightings.values()] };
}

/** How many events, each a name and a key on an entity, and how many entities a tenant may have. */
export interface DataBounds extends EntityBounds {
  eventsMax: number;
}

/** The bounds that the operator has set. */
export const dataBounds = ({
  entitiesMax,
  entityFieldsMax,
  eventsMax,
}: Pick<Config, "entitiesMax" | "entityFieldsMax" | "eventsMax">): DataBounds => ({
  entitiesMax,
  fieldsMax: entityFieldsMax,
  eventsMax,
});

const tooManyEvents = ({ eventsMax }: DataBounds) =>
  `the tenant has ${eventsMax} events, as many as BELFRY_EVENTS_MAX allows`;

/**
 * Locks the events, makes those that are missing, and reads the latest occurrence of each that was there. Answers those that
 * were not made because they would be too many.
 */
async function lockAndRead(
  tx: Db,
  tenantId: string,
  subjects: readonly Subject[],
  known: EntityCache,
  { eventsMax }: DataBounds,
) {
  const ids = subjects.map(({ id }) => id);
  const [locked, latest] = await Promise.all([
    lockSentEvents(tx, tenantId, ids),
    tx<StoredOccurrence[]>`
      select o.* from unnest(${byteaArray(ids)}::bytea[]) as sent (id)
        cross join lateral (
          select ${storedColumns(tx)} from occurrences o
          where o.tenant_id = ${tenantId} and o.event_id = sent.id
          order by o.number desc limit 1
        ) as o`.execute(),
  ]);
  const byKey = new Map(subjects.map((subject) => [subject.key, subject]));
  for (const row of latest) byKey.get(bytesKey(row.event_id))?.history.push(toOccurrence(row));
  if (locked.ids.length === subjects.length) return { locked, refused: [] };
  for (const id of locked.ids) byKey.delete(bytesKey(id));
  const missing = [...byKey.values()];
  const refused = missing.splice(Math.max(0, eventsMax - locked.eventCount));
  if (missing.length === 0) return { locked, refused };
  const made = makeEvents(tx, tenantId, missing).catch((error) => {
    if (error.code !== NO_ENTITY) throw error;
    // The foreign key checks what was remembered: a restored database lacks some of it.
    for (const { entityId } of missing) known.forgetEntity(entityId);
    throw again("an entity that was known is not there");
  });
  // Sent together; what the first fails with says why.
  const counted = addToCount(tx, tenantId, "events", missing.length, eventsMax);
  counted.catch(() => undefined);
  await made;
  await counted;
  return { locked, refused };
}

/** Makes events that were not there when those that are were locked. */
async function makeEvents(tx: Db, tenantId: string, missing: readonly Subject[]): Promise<void> {
  const made = await tx`
    insert into events (tenant_id, id, entity_id, ${textColumns(tx)})
    select home.tenant_id, id, entity_id, ${textColumns(tx)}
    from ${home(tx, tenantId)}, unnest(
      ${byteaArray(missing.map(({ id }) => id))}::bytea[],
      ${byteaArray(missing.map(({ entityId }) => entityId))}::bytea[],
      ${textArrays(tx, missing)}
    ) as event (id, entity_id, ${textColumns(tx)})
    order by id
    on conflict do nothing`;
  // To lock them now would leave the order of locks.
  if (made.count < missing.length) throw again("another has made some of these events since");
}

/**
 * Reads what instances need that are no newer than the last sight of their event: which of them are known, and, of those
 * from before the latest occurrence, the occurrence that had begun by then, else the first.
 */
async function readLate(tx: Db, tenantId: string, subjects: readonly Subject[]): Promise<Set<string>> {
  const old: Late[] = [];
  const early: { subject: Subject; timeMs: bigint }[] = [];
  for (const subject of subjects) {
    const latest = subject.history[0];
    if (latest === undefined) continue;
    for (const instance of subject.instances) {
      if (instance.timeMs > latest.lastSeenMs || instance.onlyKeepsOpen) continue; // no report is newer
      old.push({ subject, instance });
      if (instance.timeMs < latest.startMs && latest.number > 1) early.push({ subject, timeMs: instance.timeMs });
    }
  }
  if (old.length === 0) return new Set();
  const byKey = new Map(old.map(({ subject }) => [subject.key, subject]));
  const [known] = await Promise.all([
    readKnown(tx, tenantId, old),
    early.length > 0 ? readBegun(tx, tenantId, early, byKey) : undefined,
  ]);
  return known;
}

async function readKnown(tx: Db, tenantId: string, old: readonly Late[]) {
  const rows = await tx<{ event_id: Buffer; time_ms: bigint; severity: number; status: number }[]>`
    select sent.* from unnest(
        ${byteaArray(old.map(({ subject }) => subject.id))}::bytea[],
        ${bigintArray(old.map(({ instance }) => instance.timeMs))}::bigint[],
        ${int4Array(old.map(({ instance }) => instance.severity))}::int4[],
        ${int4Array(old.map(({ instance }) => instance.status))}::int4[]
      ) as sent (event_id, time_ms, severity, status)
      cross join lateral (
        select from instances i
        where i.tenant_id = ${tenantId} and i.time_ms = sent.time_ms and i.event_id = sent.event_id
          and i.severity = sent.severity and i.status = sent.status limit 1
      ) as known`;
  return new Set(rows.map((row) => instanceKey(bytesKey(row.event_id), { ...row, timeMs: row.time_ms })));
}

async function readBegun(
  tx: Db,
  tenantId: string,
  early: readonly { subject: Subject; timeMs: bigint }[],
  byKey: ReadonlyMap<string, Subject>,
) {
  // Both by occurrences_start.
  const rows = await tx<StoredOccurrence[]>`
    select o.* from unnest(
        ${byteaArray(early.map(({ subject }) => subject.id))}::bytea[],
        ${bigintArray(early.map(({ timeMs }) => timeMs))}::bigint[]
      ) as sent (id, time_ms)
      cross join lateral (
        (select ${storedColumns(tx)}, 0 as place from occurrences o
          where o.tenant_id = ${tenantId} and o.event_id = sent.id and o.start_ms <= sent.time_ms
          order by o.start_ms desc, o.number desc limit 1)
        union all
        (select ${storedColumns(tx)}, 1 as place from occurrences o
          where o.tenant_id = ${tenantId} and o.event_id = sent.id
          order by o.start_ms, o.number limit 1)
        order by place limit 1
      ) as o`;
  for (const row of rows) {
    const { history } = byKey.get(bytesKey(row.event_id)) as Subject;
    if (!history.some(({ number }) => number === row.number)) history.push(toOccurrence(row));
  }
  for (const { history } of byKey.values()) history.sort((a, b) => a.number - b.number);
}

interface Storing {
  nowMs: number;
  store: StoreChanges;
  /** What this process knows of entities; one of its own for a call costs that call the look-ups, and no other gains. */
  known: EntityCache;
  bounds: DataBounds;
}

/**
 * Stores a batch of at most 1,000 event records in one transaction, in their order. May be repeated: an instance that is
 * there already (same event, time, severity and status) changes nothing but when its event expires. Returns the places of those that were not stored,
 * because the tenant would have too many events or entities, and why.
 */
export async function ingestEvents(
  db: Db,
  tenantId: string,
  items: readonly EventItem[],
  { nowMs, store, known, bounds }: Storing,
): Promise<Map<number, string>> {
  if (items.length === 0) return new Map();
  return await transaction(db, async (tx) => {
    const { subjects: all, sightings } = gather(tenantId, items, nowMs);
    const unmade = new Set((await touchEntities(tx, tenantId, sightings, nowMs, known, bounds)).map(bytesKey));
    const subjects = unmade.size === 0 ? all : all.filter(({ entityId }) => !unmade.has(bytesKey(entityId)));
    const { locked, refused } = await lockAndRead(tx, tenantId, subjects, known, bounds);
    failpoint("ingest:read");
    const left = new Set(refused.map(({ key }) => key));
    const taken = left.size === 0 ? subjects : subjects.filter(({ key }) => !left.has(key));
    const repeats = await readLate(tx, tenantId, taken);
    const { changes, keptOpen } = applyAll(taken, repeats, nowMs);
    await store(tx, locked, changes, nowMs, { keptOpen });
    return unmade.size + left.size === 0 ? new Map() : refusals(tenantId, items, { unmade, left }, bounds);
  });
}

/** The places of items whose entities or events were not made, and why. */
function refusals(
  tenantId: string,
  items: readonly EventItem[],
  { unmade, left }: { unmade: ReadonlySet<string>; left: ReadonlySet<string> },
  bounds: DataBounds,
): Map<number, string> {
  const refused = new Map<number, string>();
  for (const [i, item] of items.entries()) {
    const { id, entityId } = identityOf(tenantId, item.dimensions, item);
    if (unmade.has(bytesKey(entityId))) refused.set(i, tooManyEntities(bounds));
    else if (left.has(bytesKey(id))) refused.set(i, tooManyEvents(bounds));
  }
  return refused;
}
