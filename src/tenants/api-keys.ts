import { createKey } from "../auth/issue.ts";
import type { Db } from "../db/connect.ts";
import { beyond, keyTexts, type SortKey } from "../db/paging/keyset.ts";
import { tokenPage } from "../db/paging/token-page.ts";
import { failedPrecondition, invalidField, notFound } from "../errors.ts";
import { keepManagerKey } from "./manager-keys.ts";

const keysMax = 200n;

/** A key as it is stored, without its digest. */
export interface KeyRow {
  id: string;
  prefix: string;
  description: string;
  createdMs: bigint;
  expiresMs: bigint | null;
  lastUsedMs: bigint | null;
}

/**
 * Makes a key for a client, in the caller's transaction; `secret` is shown once.
 * @throws code 5 without the client; code 3 at `path` when the key would have expired already; code 9 for the 201st
 */
export async function issueKey(
  tx: Db,
  tenantId: string,
  clientId: string,
  { description, expiresMs }: { description: string; expiresMs: bigint | null },
  path: string,
): Promise<{ key: KeyRow; secret: string }> {
  // The lock makes the next one wait and then count what this one has made.
  const [client] = await tx<{ now: bigint }[]>`
    select (extract(epoch from clock_timestamp()) * 1000)::bigint as now
    from api_clients where tenant_id = ${tenantId} and id = ${clientId} for no key update`;
  if (client === undefined) throw notFound("API client", clientId);
  if (expiresMs !== null && expiresMs <= client.now) throw invalidField(path, "must be in the future");
  const [row] = await tx<[{ count: bigint }]>`
    select count(*) as count from api_keys where tenant_id = ${tenantId} and client_id = ${clientId}`;
  if (row.count >= keysMax) {
    throw failedPrecondition(`the API client ${clientId} has ${keysMax} keys already; revoke one first`);
  }
  const { text, ...key } = await createKey(tx, tenantId, clientId, { description, expiresMs });
  return { key: { ...key, description, expiresMs, lastUsedMs: null }, secret: text };
}

/** Keys of a client, the oldest first; all when no page size is given. @throws code 5; code 3 for a bad page token. */
export async function listKeys(
  db: Db,
  tenantId: string,
  request: { clientId: string; pageSize: number; pageToken: string },
): Promise<{ keys: KeyRow[]; nextPageToken: string; totalCount: bigint }> {
  const { clientId } = request;
  const page = tokenPage("API keys", tenantId, request, clientId, null);
  const keys: SortKey[] = [
    { expression: db`created_ms`, type: "bigint", descending: false },
    { expression: db`id`, type: "text", descending: false },
  ];
  // By api_keys_client: there are few.
  const [rows, [client]] = await Promise.all([
    db<(KeyRow & { keyTexts: (string | null)[] })[]>`
      select id, prefix, description, created_ms as "createdMs", expires_ms as "expiresMs",
        last_used_ms as "lastUsedMs", ${keyTexts(db, keys)} as "keyTexts"
      from api_keys
      where tenant_id = ${tenantId} and client_id = ${clientId}
        and ${page.after === undefined ? db`true` : beyond(db, keys, page.after)}
      order by created_ms, id limit ${page.rowsMax}`,
    db<{ total: bigint }[]>`
      select (select count(*) from api_keys where tenant_id = ${tenantId} and client_id = ${clientId}) as total
      from api_clients where tenant_id = ${tenantId} and id = ${clientId}`,
  ]);
  if (client === undefined) throw notFound("API client", clientId);
  const { items, nextPageToken } = page.cut(rows, (row) => row.keyTexts);
  return { keys: items, nextPageToken, totalCount: client.total };
}

/** Revokes a key, in the caller's transaction: refused everywhere within a second of the commit. @throws code 5; code 9 for the last manager key. */
export async function revokeKey(tx: Db, tenantId: string, clientId: string, keyId: string): Promise<void> {
  await keepManagerKey(tx, tenantId, async () => {
    const [key] = await tx<{ prefix: string }[]>`
      delete from api_keys where tenant_id = ${tenantId} and id = ${keyId} and client_id = ${clientId} returning prefix`;
    if (key === undefined) throw notFound("API key", keyId);
    await tx`delete from api_key_prefixes where prefix = ${key.prefix} and tenant_id = ${tenantId}`;
  });
}
