import { Code, ConnectError } from "@connectrpc/connect";
import type { MasterKey } from "../config/parsers.ts";
import type { Db } from "../db/connect.ts";
import { StartError } from "../db/start-error.ts";
import { transaction } from "../db/transaction.ts";
import { resourceText } from "../rpc/audit.ts";
import { type Actor, auditedAction } from "../tenants/audit.ts";
import { wrapDataKey } from "./envelope.ts";
import { replaceKeyFile } from "./key-file.ts";
import { type Keyring, newMasterKey } from "./keyring.ts";
import { addMasterKey, checkMasterKeys, currentMasterKey } from "./master-keys.ts";
import { unwrapped, type WrappedKey } from "./secrets.ts";

/** What a rotation did. */
export interface Rotation {
  /** The master key that protects all secrets now. */
  to: string;
  /** Tenants whose data key was wrapped again. */
  tenants: number;
  /** Master keys that nothing needs any more. */
  retired: string[];
}

/**
 * Makes the newest master key the current one on every server, and wraps all data keys again by it: tenant by tenant, so
 * that calls go on meanwhile. On the embedded database, where the service makes its master keys, it makes another one
 * first. May be repeated, also after a failure in the middle and by several at once.
 * @throws StartError without a master key, or when a data key does not open; all others are wrapped again nevertheless
 */
export async function rotateMasterKey(db: Db, keyring: Keyring, actor: Actor): Promise<Rotation> {
  if (!(await checkMasterKeys(db, keyring))) {
    throw new StartError("there is no master key: set BELFRY_MASTER_KEYS or BELFRY_MASTER_KEYS_FILE");
  }
  const { to, retired } = await transaction(db, (tx) => switchTo(tx, keyring));
  const tenants = await db<{ id: string; name: string }[]>`select id, name from tenants order by id`;
  let count = 0;
  const failed: string[] = [];
  for (const { id, name } of tenants) {
    try {
      if (await transaction(db, (tx) => rewrap(tx, id, keyring, actor))) count += 1;
    } catch (error) {
      if (!(error instanceof ConnectError) || error.code !== Code.FailedPrecondition) throw error;
      failed.push(`tenant ${JSON.stringify(name)} (${error.rawMessage})`);
    }
  }
  if (failed.length > 0)
    throw new StartError(`${count} data keys are wrapped anew, but not that of ${failed.join("; ")}`);
  await transaction(db, (tx) => forget(tx, retired));
  const { ownFile } = keyring;
  // Once that is committed: a key that the database names must be in the file, else no server starts any more.
  if (ownFile !== undefined) await transaction(db, (tx) => tidyOwnFile(tx, keyring, ownFile));
  return { to, tenants: count, retired };
}

/** From this transaction on no server wraps a new data key by another master key. */
async function switchTo(tx: Db, keyring: Keyring): Promise<{ to: string; retired: string[] }> {
  const ids = await lockAll(tx);
  const target =
    keyring.ownFile === undefined ? (keyring.all()[0] as MasterKey) : addOwnKey(keyring, keyring.ownFile, ids);
  await addMasterKey(tx, target);
  await tx`update master_keys set current = false where current and id <> ${target.id}`;
  await tx`update master_keys set current = true where not current and id = ${target.id}`;
  return { to: target.id, retired: ids.filter((id) => id !== target.id) };
}

/**
 * Locks the rows of master_keys, all of them: a transaction that has waited for one that another rotation deletes holds nothing, and
 * what that one has added is not locked yet.
 */
async function lockAll(tx: Db): Promise<string[]> {
  for (;;) {
    const locked = await tx<{ id: string }[]>`select id from master_keys order by id for update`;
    const there = await tx<{ id: string }[]>`select id from master_keys order by id`;
    const ids = there.map(({ id }) => id);
    if (ids.join() === locked.map(({ id }) => id).join()) return ids;
  }
}

/** Adds a new key to the file before the database knows of it; the caller holds the rows of master_keys. */
function addOwnKey(keyring: Keyring, file: string, ids: readonly string[]): MasterKey {
  keyring.read();
  const made = newMasterKey([...ids, ...keyring.all().map(({ id }) => id)]);
  replaceKeyFile(file, [made, ...keyring.all()]);
  keyring.read();
  return made;
}

/** Whether the tenant's data key was under another master key than the current one. */
async function rewrap(tx: Db, tenantId: string, keyring: Keyring, actor: Actor): Promise<boolean> {
  const { id, key } = await currentMasterKey(tx, keyring);
  const [stored] = await tx<WrappedKey[]>`
    select master_key_id as "masterKeyId", wrapped from data_keys where tenant_id = ${tenantId} for update`;
  if (stored === undefined || stored.masterKeyId === id) return false;
  const dataKey = unwrapped(tenantId, stored, keyring);
  await tx`
    update data_keys set master_key_id = ${id}, wrapped = ${wrapDataKey(key, id, tenantId, dataKey)}
    where tenant_id = ${tenantId}`;
  await auditedAction(tx, tenantId, actor, "RotateMasterKey", resourceText("masterKey", id));
  return true;
}

/** Forgets the master keys that were not current before all tenants were rotated: no data key is wrapped by them now. */
async function forget(tx: Db, ids: readonly string[]): Promise<void> {
  await lockAll(tx);
  for (const id of ids) await tx`delete from master_keys where id = ${id} and not current`;
}

/** Leaves in the file the keys that the database names. */
async function tidyOwnFile(tx: Db, keyring: Keyring, file: string): Promise<void> {
  const kept = await lockAll(tx);
  keyring.read();
  replaceKeyFile(
    file,
    keyring.all().filter(({ id }) => kept.includes(id)),
  );
}
