import type { Fragment } from "postgres";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { afterCommit } from "../db/transaction.ts";
import { addToCount, leftOutRow, noteLeftOut, readCount } from "../tenants/usage-counters.ts";
import type { EntityCache } from "./entity-cache.ts";

/** What a key is a key of. */
export type KeySource = "dimension" | "metadata" | "customProperty";

/** The keys that occur in objects, each once. */
export function keysIn(objects: readonly object[]): Set<string> {
  const keys = new Set<string>();
  for (const object of objects) for (const key in object) keys.add(key);
  return keys;
}

type SeenKeys = Partial<Record<KeySource, Iterable<string>>>;

interface Pair {
  source: KeySource;
  key: string;
}

const pairsOf = (seen: SeenKeys): Pair[] =>
  (Object.entries(seen) as [KeySource, Iterable<string>][]).flatMap(([source, keys]) =>
    [...keys].map((key) => ({ source, key })),
  );

/** Those of these keys that are not known, in their order. */
async function unknownOf(tx: Db, tenantId: string, pairs: readonly Pair[]): Promise<Pair[]> {
  return await tx<Pair[]>`
    select source, key
    from unnest(
      ${textArray(pairs.map(({ source }) => source))}::text[],
      ${textArray(pairs.map(({ key }) => key))}::text[]
    ) as seen (source, key)
      left join lateral (
        select true as known from entity_keys k
        where k.tenant_id = ${tenantId} and k.source = seen.source and k.key = seen.key limit 1
      ) as entry on true
    where known is null
    order by source, key`;
}

/**
 * Makes keys known as ones that entities of the tenant have, up to `fieldsMax` in all; answers those that were left out. May be
 * repeated; what is known already is neither locked nor written.
 */
export async function noteKeys(tx: Db, tenantId: string, seen: SeenKeys, fieldsMax: number): Promise<Pair[]> {
  const pairs = pairsOf(seen);
  if (pairs.length === 0) return [];
  const unknown = await unknownOf(tx, tenantId, pairs);
  if (unknown.length === 0) return [];
  const room = Math.max(0, fieldsMax - (await readCount(tx, tenantId, "fields")));
  const left = unknown.splice(room);
  if (unknown.length > 0) {
    const made = await tx`
      insert into entity_keys (tenant_id, source, key)
      select home.tenant_id, source, key
      from ${home(tx, tenantId)}, unnest(
        ${textArray(unknown.map(({ source }) => source))}::text[],
        ${textArray(unknown.map(({ key }) => key))}::text[]
      ) as seen (source, key)
      order by source, key
      on conflict do nothing`;
    await addToCount(tx, tenantId, "fields", made.count, fieldsMax);
  }
  if (left.length > 0) await noteLeftOut(tx, tenantId);
  return left;
}

/** The same for keys that are new as far as this process knows, in a transaction; after its commit it knows them. */
export async function noteNewKeys(
  tx: Db,
  tenantId: string,
  seen: SeenKeys,
  known: EntityCache,
  fieldsMax = Infinity,
): Promise<void> {
  const news = (Object.entries(seen) as [KeySource, Iterable<string>][])
    .map(([source, keys]) => [source, known.unknownKeys(tenantId, source, keys)] as const)
    .filter(([, keys]) => keys.length > 0);
  if (news.length === 0) return;
  const left = await noteKeys(tx, tenantId, Object.fromEntries(news), fieldsMax);
  const leftOut = new Set(left.map(({ source, key }) => `${source} ${key}`));
  afterCommit(tx, () => {
    for (const [source, keys] of news) {
      known.noteKeys(
        tenantId,
        source,
        keys.filter((key) => !leftOut.has(`${source} ${key}`)),
      );
    }
  });
}

/** The keys that entities of the tenant have or had, in order. */
export async function readKeys(db: Db, tenantId: string): Promise<{ source: KeySource; key: string }[]> {
  return await db<{ source: KeySource; key: string }[]>`
    select source, key from entity_keys where tenant_id = ${tenantId} order by source, key`;
}

/** A query of those of `keys` that metadata of the tenant have or had, and of a null where some keys of the tenant were left out. */
export const metadataKeysQuery = (db: Db, tenantId: string, keys: readonly string[]): Fragment => db`
  select key from entity_keys
  where tenant_id = ${tenantId} and source = 'metadata' and key = any(${textArray(keys)}::text[])
  union all select null from (${leftOutRow(db, tenantId)}) as left_out`;

/** Those of `keys` that metadata have or had, of what the query finds; all of them where some keys were left out. */
export function metadataKeysOf(keys: readonly string[], found: readonly (string | null)[]): Set<string> {
  const known = found.filter((key) => key !== null);
  return new Set(known.length < found.length ? keys : known);
}

/** Those of `keys` that metadata of the tenant have or had; all of them where some keys of the tenant were left out. */
export async function metadataKeys(db: Db, tenantId: string, keys: readonly string[]): Promise<Set<string>> {
  if (keys.length === 0) return new Set();
  const rows = await db<{ key: string | null }[]>`${metadataKeysQuery(db, tenantId, keys)}`;
  return metadataKeysOf(
    keys,
    rows.map(({ key }) => key),
  );
}
