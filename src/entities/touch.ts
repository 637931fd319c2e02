import { bigintArray, byteaArray, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { afterCommit, transaction } from "../db/transaction.ts";
import { addToCount, readCount } from "../tenants/usage-counters.ts";
import type { EntityBounds } from "./bounds.ts";
import type { EntityCache } from "./entity-cache.ts";
import { keysIn, noteNewKeys } from "./field-keys.ts";
import { nameFromDimensions } from "./identity.ts";

const MINUTE_MS = 60_000n;

/** Data that named an entity by its dimensions, with the data's own time. */
export interface Sighting {
  id: Buffer;
  dimensions: Record<string, string>;
  timestampMs: bigint;
}

interface Seen extends Sighting {
  minuteMs: bigint;
}

/**
 * Makes the entities of these sightings known, named after their dimensions, and moves their liveness on, to the
 * minute. A deleted entity stays deleted, unless it had gone idle. What is known takes no statement. May be repeated.
 * `sightings` hold each entity once. Answers those that were not made because they would be too many.
 */
export async function touchEntities(
  db: Db,
  tenantId: string,
  sightings: readonly Sighting[],
  nowMs: number,
  known: EntityCache,
  bounds: EntityBounds,
): Promise<readonly Buffer[]> {
  const news: Seen[] = [];
  for (const sighting of sightings) {
    const minuteMs = sighting.timestampMs - (sighting.timestampMs % MINUTE_MS);
    const livenessMs = known.livenessMs(sighting.id);
    if (livenessMs === undefined || livenessMs < minuteMs) news.push({ ...sighting, minuteMs });
  }
  if (news.length === 0) return [];
  news.sort((a, b) => Buffer.compare(a.id, b.id));
  return await transaction(db, (tx) => see(tx, tenantId, news, nowMs, known, bounds));
}

async function see(
  tx: Db,
  tenantId: string,
  news: readonly Seen[],
  nowMs: number,
  known: EntityCache,
  bounds: EntityBounds,
): Promise<readonly Buffer[]> {
  const keys = keysIn(news.map(({ dimensions }) => dimensions));
  await noteNewKeys(tx, tenantId, { dimension: keys }, known, bounds.fieldsMax);
  const rows = await tx<{ id: Buffer; liveness_ms: bigint; deleted: boolean }[]>`
    select id, liveness_ms, deleted_ms is not null and idle is not true as deleted from entities
    where tenant_id = ${tenantId} and id = any(${byteaArray(news.map(({ id }) => id))}::bytea[])`;
  const found = new Map(rows.map((row) => [row.id.toString("latin1"), row]));
  const missing: Seen[] = [];
  const older: Seen[] = [];
  const alive: { id: Buffer; livenessMs: bigint }[] = [];
  for (const each of news) {
    const row = found.get(each.id.toString("latin1"));
    if (row === undefined) missing.push(each);
    else if (row.deleted) continue;
    else if (row.liveness_ms < each.minuteMs) older.push(each);
    else alive.push({ id: each.id, livenessMs: row.liveness_ms });
  }
  const room = missing.length === 0 ? 0 : bounds.entitiesMax - (await readCount(tx, tenantId, "entities"));
  const refused = missing.splice(Math.max(0, room));
  // Those that are there before those that are made: the order of locks (src/events/lock.ts).
  const [moved, made] = await Promise.all([
    older.length > 0 ? write(tx, tenantId, older, nowMs) : [],
    missing.length > 0 ? write(tx, tenantId, missing, nowMs) : [],
  ]);
  const written = [...moved, ...made];
  await addToCount(tx, tenantId, "entities", written.filter((row) => row.made).length, bounds.entitiesMax);
  for (const { id, liveness_ms } of written) alive.push({ id, livenessMs: liveness_ms });
  afterCommit(tx, () => {
    for (const { id, livenessMs } of alive) known.noteEntity(id, Number(livenessMs));
  });
  return refused.map(({ id }) => id);
}

interface Alive {
  id: Buffer;
  liveness_ms: bigint;
  /** There was no row of it. */
  made: boolean;
}

/**
 * Makes entities, and moves the liveness of those that are there. As an insert, whose conflicts only the key's index can find: an
 * update would be joined with the tenant's rows where PostgreSQL takes these for few (design/statements).
 */
const write = (tx: Db, tenantId: string, seen: readonly Seen[], nowMs: number) =>
  tx<Alive[]>`
    insert into entities as stored (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
    select home.tenant_id, id, name, dimensions, '{}', ${BigInt(nowMs)}, ${BigInt(nowMs)}, minute_ms
    from ${home(tx, tenantId)}, unnest(
      ${byteaArray(seen.map(({ id }) => id))}::bytea[],
      ${textArray(seen.map(({ dimensions }) => nameFromDimensions(dimensions)))}::text[],
      ${jsonArray(seen.map(({ dimensions }) => dimensions))}::jsonb[],
      ${bigintArray(seen.map(({ minuteMs }) => minuteMs))}::bigint[]
    ) as seen (id, name, dimensions, minute_ms)
    order by id
    on conflict (tenant_id, id) do update set liveness_ms = excluded.liveness_ms, deleted_ms = null, idle = null
      where stored.liveness_ms < excluded.liveness_ms and (stored.deleted_ms is null or stored.idle)
    returning id, liveness_ms, stored.xmax::text = '0' as made`.execute();
