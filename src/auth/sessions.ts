import { and, desc, eq, gt, isNull, lte, or, sql } from "drizzle-orm";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { databaseNowMs } from "../db/columns.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { unauthenticated } from "../errors.ts";
import { keyDigest } from "./key.ts";
import type { KeyRow } from "./key-verifier.ts";
import type { Principal } from "./principal.ts";
import { newProof, newToken, type Token, withProof } from "./session-token.ts";
import { apiKeys, consoleSessions } from "./tables.ts";

/** How long sessions last. */
export interface SessionBounds {
  /** Without a use. */
  readonly sessionIdleMs: number;
  /** In all. */
  readonly sessionAgeMsMax: number;
}

/** What is stored of a session that holds, of its key and of its client. */
export interface SessionRow extends KeyRow {
  keyId: string;
  /** When it ends without a further use. */
  endsMs: bigint;
}

const sessionsMax = 100;

/**
 * Makes a session of a key, in the caller's transaction; `text` is what its cookie holds, and `proof`
 * what its page sends beside it; one digest of both is stored, so neither is worth anything alone. The oldest of a key that has a hundred ends.
 * @throws code 16 when the key was revoked or has expired meanwhile
 */
export async function createSession(
  tx: Db,
  { tenantId, keyId }: Pick<Principal, "tenantId" | "keyId">,
  { sessionIdleMs, sessionAgeMsMax }: SessionBounds,
): Promise<{ id: string; text: string; proof: string }> {
  const holds = or(isNull(apiKeys.expiresMs), gt(apiKeys.expiresMs, databaseNowMs));
  const [key] = await orm(tx)
    .select({ now: databaseNowMs })
    .from(apiKeys)
    .where(and(eq(apiKeys.tenantId, tenantId), eq(apiKeys.id, keyId), holds))
    .for("no key update");
  if (key === undefined)
    throw unauthenticated("the API key is not valid (unknown, expired or revoked)", ErrorReason.KEY_INVALID);
  const ofKey = and(eq(consoleSessions.tenantId, tenantId), eq(consoleSessions.keyId, keyId));
  const usedBefore = lte(consoleSessions.lastUsedMs, key.now - BigInt(sessionIdleMs));
  const madeBefore = lte(consoleSessions.createdMs, key.now - BigInt(sessionAgeMsMax));
  await orm(tx)
    .delete(consoleSessions)
    .where(and(ofKey, or(usedBefore, madeBefore)));
  const [kept] = await orm(tx)
    .select({ createdMs: consoleSessions.createdMs, id: consoleSessions.id })
    .from(consoleSessions)
    .where(ofKey)
    .orderBy(desc(consoleSessions.createdMs), desc(consoleSessions.id))
    .limit(1)
    .offset(sessionsMax - 1);
  if (kept !== undefined) {
    const older = sql`(${consoleSessions.createdMs}, ${consoleSessions.id}) <= (${kept.createdMs}, ${kept.id})`;
    await orm(tx).delete(consoleSessions).where(and(ofKey, older));
  }
  const { id, text } = newToken("bs", tenantId);
  const proof = newProof();
  const digest = keyDigest(withProof(text, proof));
  await orm(tx)
    .insert(consoleSessions)
    .values({ tenantId, id, keyId, digest, createdMs: key.now, lastUsedMs: key.now });
  return { id, text, proof };
}

/** A session with its client; undefined when it has ended, or its key has. */
export async function readSession(
  db: Db,
  { tenantId, id }: Pick<Token, "tenantId" | "id">,
  { sessionIdleMs, sessionAgeMsMax }: SessionBounds,
): Promise<SessionRow | undefined> {
  const [row] = await db<SessionRow[]>`
    select s.digest, s.key_id as "keyId", k.prefix as "keyPrefix", c.id as "clientId", c.name as "clientName",
      c.type as "clientType", c.role, t.name as "tenantName", e.ends_ms as "endsMs"
    from console_sessions s
    cross join lateral (
      select prefix, client_id, expires_ms from api_keys
      where tenant_id = ${tenantId} and id >= s.key_id and id <= s.key_id order by id offset 0) k
    cross join lateral (
      select id, name, type, role from api_clients
      where tenant_id = ${tenantId} and id >= k.client_id and id <= k.client_id order by id offset 0) c
    cross join tenants t
    cross join lateral (select least(s.last_used_ms + ${BigInt(sessionIdleMs)}::bigint,
      s.created_ms + ${BigInt(sessionAgeMsMax)}::bigint, k.expires_ms) as ends_ms) e
    where s.tenant_id = ${tenantId} and s.id = ${id} and t.id = ${tenantId}
      and e.ends_ms > (extract(epoch from clock_timestamp()) * 1000)::bigint`;
  return row;
}

/** Notes that a session was used; once a minute is enough. */
export async function noteSessionUse(db: Db, { tenantId, id }: Pick<Token, "tenantId" | "id">): Promise<void> {
  const due = lte(consoleSessions.lastUsedMs, sql`${databaseNowMs} - 60000`);
  await orm(db)
    .update(consoleSessions)
    .set({ lastUsedMs: databaseNowMs })
    .where(and(eq(consoleSessions.tenantId, tenantId), eq(consoleSessions.id, id), due));
}

/** Ends a session, in the caller's transaction: refused everywhere within a second of the commit. May be repeated. */
export async function endSession(tx: Db, tenantId: string, id: string): Promise<void> {
  await orm(tx)
    .delete(consoleSessions)
    .where(and(eq(consoleSessions.tenantId, tenantId), eq(consoleSessions.id, id)));
}
