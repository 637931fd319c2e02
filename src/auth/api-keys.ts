import { and, eq, sql } from "drizzle-orm";
import { ErrorReason, FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { databaseNowMs } from "../db/columns.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { keyTextsOf } from "../db/paging/keyset.ts";
import { countedPage } from "../db/paging/token-page.ts";
import { failedPrecondition, invalidField, notFound } from "../errors.ts";
import { keepManagerKey } from "./clients.ts";
import { createKey } from "./create-tenant.ts";
import { apiClients, apiKeyPrefixes, apiKeys } from "./tables.ts";

const keysMax = 200;

/** A key as it is stored, without its digest. */
export interface ListedKey {
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
): Promise<{ key: ListedKey; secret: string }> {
  // The lock makes the next one wait and then count what this one has made.
  const [client] = await orm(tx)
    .select({ now: databaseNowMs })
    .from(apiClients)
    .where(and(eq(apiClients.tenantId, tenantId), eq(apiClients.id, clientId)))
    .for("no key update");
  if (client === undefined) throw notFound("API client", clientId);
  if (expiresMs !== null && expiresMs <= client.now) throw invalidField(path, "must be in the future", FieldRule.RANGE);
  if ((await orm(tx).$count(apiKeys, ofClient(tenantId, clientId))) >= keysMax) {
    throw failedPrecondition(
      `the API client ${clientId} has ${keysMax} keys already; revoke one first`,
      ErrorReason.QUOTA_REACHED,
    );
  }
  const { text, ...key } = await createKey(tx, tenantId, clientId, { description, expiresMs });
  return { key: { ...key, description, expiresMs, lastUsedMs: null }, secret: text };
}

const ofClient = (tenantId: string, clientId: string) =>
  and(eq(apiKeys.tenantId, tenantId), eq(apiKeys.clientId, clientId));

const columns = {
  id: apiKeys.id,
  prefix: apiKeys.prefix,
  description: apiKeys.description,
  createdMs: apiKeys.createdMs,
  expiresMs: apiKeys.expiresMs,
  lastUsedMs: apiKeys.lastUsedMs,
};

/** Keys of a client, the oldest first; all when no page size is given. @throws code 5; code 3 for a bad page token. */
export async function listKeys(
  db: Db,
  tenantId: string,
  request: { clientId: string; pageSize: number; pageToken: string },
): Promise<{ keys: ListedKey[]; nextPageToken: string; totalCount: bigint }> {
  const { clientId } = request;
  const page = countedPage("API keys", tenantId, request, clientId, null);
  const place = page.after && keyTextsOf(page.after, ["bigint", "text"]);
  const own = ofClient(tenantId, clientId);
  // By api_keys_client: there are few.
  const [rows, total, [client]] = await Promise.all([
    orm(db)
      .select(columns)
      .from(apiKeys)
      .where(and(own, place && sql`(${apiKeys.createdMs}, ${apiKeys.id}) > (${place[0]}::text::bigint, ${place[1]})`))
      .orderBy(apiKeys.createdMs, apiKeys.id)
      .limit(page.rowsMax ?? Number.MAX_SAFE_INTEGER),
    page.total(() => orm(db).$count(apiKeys, own)),
    orm(db)
      .select({ id: apiClients.id })
      .from(apiClients)
      .where(and(eq(apiClients.tenantId, tenantId), eq(apiClients.id, clientId))),
  ]);
  if (client === undefined) throw notFound("API client", clientId);
  const { items, nextPageToken } = page.cut(rows, ({ createdMs, id }) => [String(createdMs), id], total);
  return { keys: items, nextPageToken, totalCount: total };
}

/** Revokes a key, in the caller's transaction: refused everywhere within a second of the commit. @throws code 5; code 9 for the last manager key. */
export async function revokeKey(tx: Db, tenantId: string, clientId: string, keyId: string): Promise<void> {
  await keepManagerKey(tx, tenantId, async () => {
    const [key] = await orm(tx)
      .delete(apiKeys)
      .where(and(ofClient(tenantId, clientId), eq(apiKeys.id, keyId)))
      .returning({ prefix: apiKeys.prefix });
    if (key === undefined) throw notFound("API key", keyId);
    await orm(tx)
      .delete(apiKeyPrefixes)
      .where(and(eq(apiKeyPrefixes.prefix, key.prefix), eq(apiKeyPrefixes.tenantId, tenantId)));
  });
}
