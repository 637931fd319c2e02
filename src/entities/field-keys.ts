import type { PendingQuery, Row } from "postgres";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { afterCommit } from "../db/transaction.ts";
import type { Known } from "./known.ts";

/** What a key is a key of. */
export type KeySource = "dimension" | "metadata" | "customProperty";

/** The keys that occur in objects, each once. */
export function keysIn(objects: readonly object[]): Set<string> {
  const keys = new Set<string>();
  for (const object of objects) for (const key in object) keys.add(key);
  return keys;
}

/**
 * The statement that makes keys known as ones that entities of the tenant have: by itself, or as a part of another. May be
 * repeated; what is known already is neither locked nor written.
 */
export function notingKeys(
  db: Db,
  tenantId: string,
  seen: Partial<Record<KeySource, Iterable<string>>>,
): PendingQuery<Row[]> {
  const pairs = Object.entries(seen).flatMap(([source, keys]) => [...keys].map((key) => ({ source, key })));
  return db`
    insert into entity_keys (tenant_id, source, key)
    select ${tenantId}::uuid, source, key
    from unnest(
      ${textArray(pairs.map(({ source }) => source))}::text[],
      ${textArray(pairs.map(({ key }) => key))}::text[]
    ) as seen (source, key)
    where not exists (
      select from entity_keys known
      where known.tenant_id = ${tenantId}::uuid and known.source = seen.source and known.key = seen.key
    )
    order by source, key
    on conflict do nothing`;
}

/** The same for keys that are new as far as this process knows, in a transaction; after its commit it knows them. */
export async function noteNewKeys(
  tx: Db,
  tenantId: string,
  seen: Partial<Record<KeySource, Iterable<string>>>,
  known: Known,
): Promise<void> {
  const news = (Object.entries(seen) as [KeySource, Iterable<string>][])
    .map(([source, keys]) => [source, known.unknownKeys(tenantId, source, keys)] as const)
    .filter(([, keys]) => keys.length > 0);
  if (news.length === 0) return;
  await notingKeys(tx, tenantId, Object.fromEntries(news)).execute();
  afterCommit(tx, () => {
    for (const [source, keys] of news) known.noteKeys(tenantId, source, keys);
  });
}

/** The keys that entities of the tenant have or had, in order. */
export async function readKeys(db: Db, tenantId: string): Promise<{ source: KeySource; key: string }[]> {
  return await db<{ source: KeySource; key: string }[]>`
    select source, key from entity_keys where tenant_id = ${tenantId} order by source, key`;
}

/** Those of `keys` that metadata of the tenant have or had. */
export async function metadataKeys(db: Db, tenantId: string, keys: readonly string[]): Promise<Set<string>> {
  if (keys.length === 0) return new Set();
  const rows = await db<{ key: string }[]>`
    select key from entity_keys
    where tenant_id = ${tenantId} and source = 'metadata' and key = any(${textArray(keys)}::text[])`;
  return new Set(rows.map(({ key }) => key));
}
