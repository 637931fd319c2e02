import { and, asc, eq, gt, isNull, lte, or, type SQL } from "drizzle-orm";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { databaseNowMs } from "../db/columns.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { failedPrecondition, notFound, unauthenticated } from "../errors.ts";
import type { KeyOwner } from "./key-verifier.ts";
import { isToken, newToken, parseToken } from "./session-token.ts";
import { apiClients, apiKeys, consoleLinks } from "./tables.ts";

const linkMs = 1_800_000n;
const linksMax = 20;

/**
 * Makes a link that makes a session of a key, once, within 30 minutes, in the caller's transaction: of the key with this prefix,
 * else of the oldest manager key. Returns the token, which is not stored, and the key's id. The oldest of a key that has twenty goes.
 * @throws code 5 when no key that holds has the prefix; code 9 when the tenant has no manager key
 */
export async function createLink(tx: Db, tenantId: string, prefix?: string): Promise<{ token: string; keyId: string }> {
  const holds = or(isNull(apiKeys.expiresMs), gt(apiKeys.expiresMs, databaseNowMs));
  const wanted = prefix === undefined ? eq(apiClients.role, "manager") : eq(apiKeys.prefix, prefix);
  const [key] = await orm(tx)
    .select({ id: apiKeys.id, now: databaseNowMs })
    .from(apiKeys)
    .innerJoin(apiClients, and(eq(apiClients.tenantId, apiKeys.tenantId), eq(apiClients.id, apiKeys.clientId)))
    .where(and(eq(apiKeys.tenantId, tenantId), wanted, holds))
    .orderBy(asc(apiKeys.createdMs), asc(apiKeys.id))
    .limit(1);
  if (key === undefined && prefix !== undefined) throw notFound("API key", prefix);
  if (key === undefined)
    throw failedPrecondition(
      "the tenant has no manager key that is valid; create one first",
      ErrorReason.NO_MANAGER_KEY,
    );
  const ofKey = and(eq(consoleLinks.tenantId, tenantId), eq(consoleLinks.keyId, key.id));
  await orm(tx)
    .delete(consoleLinks)
    .where(and(ofKey, lte(consoleLinks.expiresMs, key.now)));
  const open = await orm(tx)
    .select({ id: consoleLinks.id })
    .from(consoleLinks)
    .where(ofKey)
    .orderBy(asc(consoleLinks.id));
  for (const { id } of open.slice(0, Math.max(0, open.length - linksMax + 1))) await removeLink(tx, tenantId, id);
  const { text, id, digest } = newToken("bl", tenantId);
  await orm(tx)
    .insert(consoleLinks)
    .values({ tenantId, id, keyId: key.id, digest, expiresMs: key.now + linkMs });
  return { token: text, keyId: key.id };
}

/** Uses up a link, in the caller's transaction; returns its key. @throws code 16 for one that is unknown, used or too old */
export async function redeemLink(tx: Db, token: string): Promise<KeyOwner> {
  const named = parseToken("bl", token);
  const row = named && (await removeLink(tx, named.tenantId, named.id, gt(consoleLinks.expiresMs, databaseNowMs)));
  if (named === undefined || row === undefined || !isToken(token, row.digest)) {
    throw unauthenticated(
      "the link is not valid: it holds once, for 30 minutes; make another one, or use a key",
      ErrorReason.LINK_INVALID,
    );
  }
  return { tenantId: named.tenantId, keyId: row.keyId };
}

async function removeLink(tx: Db, tenantId: string, id: string, holds?: SQL) {
  const { keyId, digest } = consoleLinks;
  const [row] = await orm(tx)
    .delete(consoleLinks)
    .where(and(eq(consoleLinks.tenantId, tenantId), eq(consoleLinks.id, id), holds))
    .returning({ keyId, digest });
  return row;
}
