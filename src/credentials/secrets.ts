import type { KeyObject } from "node:crypto";
import { and, eq } from "drizzle-orm";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { failedPrecondition, notFound } from "../errors.ts";
import { newDataKey, openSecret, type SecretOwner, sealSecret, unwrapDataKey, wrapDataKey } from "./envelope.ts";
import type { Keyring } from "./keyring.ts";
import { currentMasterKey, masterKey } from "./master-keys.ts";
import { credentials, dataKeys } from "./tables.ts";

/** A tenant's data key as it is stored. */
export interface WrappedKey {
  masterKeyId: string;
  wrapped: Buffer;
}

/**
 * Secrets by name as they are stored, sealed for their owner by the tenant's data key, which is made when the tenant has
 * none; in the caller's transaction. @throws code 9 without a usable master key
 */
export async function sealSecrets(
  tx: Db,
  tenantId: string,
  owner: SecretOwner,
  secrets: Readonly<Record<string, string>>,
  keyring: Keyring,
): Promise<Record<string, string>> {
  const entries = Object.entries(secrets);
  if (entries.length === 0) return {};
  const dataKey = await ownDataKey(tx, tenantId, keyring);
  return Object.fromEntries(entries.map(([name, text]) => [name, sealSecret(dataKey, tenantId, owner, name, text)]));
}

async function ownDataKey(tx: Db, tenantId: string, keyring: Keyring): Promise<KeyObject> {
  const stored = await readDataKey(tx, tenantId);
  if (stored !== undefined) return unwrapped(tenantId, stored, keyring);
  const { id, key } = await currentMasterKey(tx, keyring);
  const made = newDataKey();
  const inserted = await orm(tx)
    .insert(dataKeys)
    .values({ tenantId, masterKeyId: id, wrapped: wrapDataKey(key, id, tenantId, made) })
    .onConflictDoNothing({ target: dataKeys.tenantId })
    .returning({ tenantId: dataKeys.tenantId });
  if (inserted.length === 1) return made;
  // Another call made one meanwhile, and has committed it.
  return unwrapped(tenantId, (await readDataKey(tx, tenantId)) as WrappedKey, keyring);
}

async function readDataKey(db: Db, tenantId: string): Promise<WrappedKey | undefined> {
  const [row] = await orm(db)
    .select({ masterKeyId: dataKeys.masterKeyId, wrapped: dataKeys.wrapped })
    .from(dataKeys)
    .where(eq(dataKeys.tenantId, tenantId));
  return row;
}

/** A tenant's data key. @throws code 9 when its master key is missing or another one, or the row was changed or moved */
export function unwrapped(tenantId: string, { masterKeyId, wrapped }: WrappedKey, keyring: Keyring): KeyObject {
  const dataKey = unwrapDataKey(masterKey(keyring, masterKeyId), masterKeyId, tenantId, wrapped);
  if (dataKey !== undefined) return dataKey;
  throw failedPrecondition(
    `the data key of the tenant does not open with the master key ${masterKeyId}: one of the two was changed`,
    ErrorReason.SECRETS_UNAVAILABLE,
  );
}

/**
 * What sealSecrets has sealed for this owner. Nothing is kept between calls, so that a rotated master key is noticed.
 * @throws code 9 that names the secret when one was changed, or sealed for another place; never a wrong secret
 */
export async function openSealed(
  db: Db,
  tenantId: string,
  owner: SecretOwner,
  sealed: Readonly<Record<string, string>>,
  keyring: Keyring,
): Promise<Record<string, string>> {
  return (await sealedOpener(db, tenantId, keyring))(owner, sealed);
}

/** Reads a tenant's data key once to open what is sealed for several owners, each as openSealed. */
export async function sealedOpener(db: Db, tenantId: string, keyring: Keyring) {
  const stored = await readDataKey(db, tenantId);
  return (owner: SecretOwner, sealed: Readonly<Record<string, string>>) =>
    opened(tenantId, owner, sealed, stored, keyring);
}

function opened(
  tenantId: string,
  owner: SecretOwner,
  sealed: Readonly<Record<string, string>>,
  stored: WrappedKey | undefined,
  keyring: Keyring,
): Record<string, string> {
  const entries = Object.entries(sealed);
  if (entries.length === 0) return {};
  if (stored === undefined)
    throw failedPrecondition(
      "the data key of the tenant, which its secrets need, is gone",
      ErrorReason.SECRETS_UNAVAILABLE,
    );
  const dataKey = unwrapped(tenantId, stored, keyring);
  return Object.fromEntries(
    entries.map(([name, text]) => {
      const secret = openSecret(dataKey, tenantId, owner, name, text);
      if (secret !== undefined) return [name, secret];
      throw failedPrecondition(
        `the secret ${JSON.stringify(name)} of the ${owner.kind} ${owner.id} is not as it was stored: store it again`,
        ErrorReason.SECRETS_UNAVAILABLE,
      );
    }),
  );
}

/**
 * The secrets of a credential by their keys, and its type, which says which keys there are. Empty when it was stored
 * without. One statement. @throws code 5 without the credential; code 9 as openSealed
 */
export async function openSecrets(
  db: Db,
  tenantId: string,
  id: string,
  keyring: Keyring,
): Promise<{ type: string; secrets: Record<string, string> }> {
  const [row] = await orm(db)
    .select({
      type: credentials.type,
      secrets: credentials.secrets,
      key: { masterKeyId: dataKeys.masterKeyId, wrapped: dataKeys.wrapped },
    })
    .from(credentials)
    .leftJoin(dataKeys, eq(dataKeys.tenantId, credentials.tenantId))
    .where(and(eq(credentials.tenantId, tenantId), eq(credentials.id, id)));
  if (row === undefined) throw notFound("credential", id);
  const { type, secrets, key } = row;
  return { type, secrets: opened(tenantId, { kind: "credential", id }, secrets, key ?? undefined, keyring) };
}
