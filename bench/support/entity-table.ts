import { bigintArray, byteaArray, jsonArray, textArray } from "../../src/db/batch.ts";
import type { Db, Sql } from "../../src/db/connect.ts";
import { coreFacts } from "../../src/entities/core-properties.ts";
import { entityId } from "../../src/entities/identity.ts";
import { type MadeEntity, madeEntities } from "./entities.ts";

const chunk = 2000;

/** Ids of the entities in the order in which they were made. */
export type Ids = Buffer[];

/** Writes entities of these ids as models and users would have made them. */
export async function insertEntities(
  db: Db,
  tenantId: string,
  entities: readonly MadeEntity[],
  ids: readonly Buffer[],
): Promise<void> {
  const now = BigInt(Date.now());
  const facts = entities.map(({ dimensions, metadata }) => coreFacts(tenantId, dimensions, metadata));
  await db`
    insert into entities (tenant_id, id, name, dimensions, metadata, core_properties, custom_properties, model_ms,
      created_ms, updated_ms, liveness_ms)
    select ${tenantId}::uuid, id, name, dimensions, metadata, core, custom, ms, ms, ms, ms - ms % 60000
    from unnest(
      ${byteaArray(ids)}::bytea[],
      ${textArray(entities.map(({ metadata }) => String(metadata.name)))}::text[],
      ${jsonArray(entities.map(({ dimensions }) => dimensions))}::jsonb[],
      ${jsonArray(entities.map(({ metadata }) => metadata))}::jsonb[],
      ${jsonArray(facts)}::jsonb[],
      ${jsonArray(entities.map(({ customProperties }) => customProperties))}::jsonb[],
      ${bigintArray(entities.map(() => now))}::bigint[]
    ) as made (id, name, dimensions, metadata, core, custom, ms)`;
}

/**
 * Drops the indexes of the table whose definition is like `definition`, except the primary key: made when all rows are
 * there they take a fraction of the time. Returns what makes each as it was.
 */
export async function dropIndexes(db: Db, definition: string): Promise<{ name: string; text: string }[]> {
  const indexes = await db<{ name: string; text: string }[]>`
    select relname as name, concat_ws('; ', pg_get_indexdef(oid), (
      select string_agg(format('alter index %I alter column %s set statistics %s', relname, attnum, attstattarget), '; ')
      from pg_attribute where attrelid = oid and attstattarget is not null
    )) as text
    from pg_index join pg_class on oid = indexrelid
    where indrelid = 'entities'::regclass and not indisprimary and pg_get_indexdef(oid) like ${definition}`;
  await db.unsafe(`drop index ${indexes.map(({ name }) => name).join(", ")}`);
  return indexes;
}

/**
 * Empties the table and fills it with `count` entities of one tenant. The indexes over terms and texts are made afterwards,
 * which is quicker; returns the ids and how long each took to make.
 */
export async function fillEntities(db: Sql, tenantId: string, count: number): Promise<{ ids: Ids; madeMs: string[] }> {
  await db.unsafe("truncate entities cascade");
  const indexes = await dropIndexes(db, "% gin %");
  const ids: Ids = [];
  let waiting: MadeEntity[] = [];
  async function flush() {
    const own = waiting.map(({ dimensions }) => entityId(tenantId, dimensions));
    await insertEntities(db, tenantId, waiting, own);
    ids.push(...own);
    waiting = [];
  }
  for (const entity of madeEntities(count)) {
    waiting.push(entity);
    if (waiting.length === chunk) await flush();
  }
  if (waiting.length > 0) await flush();
  const madeMs: string[] = [];
  for (const { name, text } of indexes) {
    const begin = performance.now();
    await db.unsafe(text);
    madeMs.push(`${name} in ${((performance.now() - begin) / 1000).toFixed(1)} s`);
  }
  await db.unsafe("vacuum analyze entities");
  return { ids, madeMs };
}

/** What the table and each of its indexes takes, in bytes an entity. */
export async function bytesAnEntity(db: Db, count: number): Promise<string> {
  const rows = await db<{ name: string; bytes: bigint }[]>`
    select 'table' as name, pg_table_size('entities') as bytes
    union all select indexrelname, pg_relation_size(indexrelid) from pg_stat_user_indexes where relname = 'entities'`;
  return rows.map(({ name, bytes }) => `${name} ${Math.round(Number(bytes) / count)}`).join(", ");
}
