import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { MasterKey } from "../config/parsers.ts";
import type { Db } from "../db/connect.ts";
import { StartError } from "../db/start-error.ts";
import { failedPrecondition } from "../errors.ts";
import { proofOf, proves } from "./envelope.ts";
import { makeKeyFile } from "./key-file.ts";
import { type Keyring, newMasterKey } from "./keyring.ts";

interface MasterKeyRow {
  id: string;
  proof: Buffer;
}

const where = "BELFRY_MASTER_KEYS or BELFRY_MASTER_KEYS_FILE";

/**
 * Compares the master keys of this process with those that the database's secrets are protected by, at the start. On a
 * database without any it notes the newest, which then protects new secrets on every server; on the embedded one it makes
 * that key. May be repeated, also by many servers at once. @returns whether there is a key now
 * @throws StartError when one that is in use is missing or another one
 */
export async function checkMasterKeys(db: Db, keyring: Keyring): Promise<boolean> {
  const rows = await readRows(db);
  if (rows.length > 0) return checked(rows, keyring);
  if (keyring.all().length === 0 && keyring.ownFile !== undefined) {
    makeKeyFile(keyring.ownFile, [newMasterKey([])]);
    keyring.read();
  }
  const [newest] = keyring.all();
  if (newest === undefined) return false;
  await db`
    insert into master_keys (id, proof, current) values (${newest.id}, ${proofOf(newest.key, newest.id)}, true)
    on conflict do nothing`;
  return checked(await readRows(db), keyring);
}

/** Checks that this process has all master keys of the database, which may have none. @throws StartError as checkMasterKeys */
export async function checkStoredMasterKeys(db: Db, keyring: Keyring): Promise<void> {
  checked(await readRows(db), keyring);
}

function readRows(db: Db) {
  return db<MasterKeyRow[]>`select id, proof from master_keys order by id`;
}

function checked(rows: readonly MasterKeyRow[], keyring: Keyring): true {
  for (const { id, proof } of rows) {
    const key = keyring.find(id);
    if (key === undefined) {
      throw new StartError(
        `stored secrets are protected by the master key ${id}, which is not there: put it ` +
          (keyring.ownFile === undefined ? `into ${where}` : `back into ${keyring.ownFile}, or into ${where}`),
      );
    }
    if (!proves(key, id, proof)) {
      throw new StartError(
        `the master key ${id} is not the one that protects the stored secrets: give the right one, or give this one another id`,
      );
    }
  }
  return true;
}

/** Adds a key to those that data keys may be wrapped by, not current. May be repeated. */
export async function addMasterKey(tx: Db, { id, key }: MasterKey): Promise<void> {
  await tx`
    insert into master_keys (id, proof, current) values (${id}, ${proofOf(key, id)}, false) on conflict (id) do nothing`;
}

/**
 * The master key that wraps data keys, on every server; it stays so until the caller's transaction ends.
 * @throws code 9 when there is none, or not in this process
 */
export async function currentMasterKey(tx: Db, keyring: Keyring): Promise<MasterKey> {
  // A transaction that waited for a change sees no row the first time: the lock is on the row that was current before.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const [row] = await tx<{ id: string }[]>`select id from master_keys where current for share`;
    if (row !== undefined) return { id: row.id, key: masterKey(keyring, row.id) };
  }
  throw failedPrecondition(
    `this server has no master key to protect secrets with: its operator sets ${where}`,
    ErrorReason.SECRETS_UNAVAILABLE,
  );
}

/** A master key of this process. @throws code 9 when it is not there */
export function masterKey(keyring: Keyring, id: string) {
  const key = keyring.find(id);
  if (key !== undefined) return key;
  throw failedPrecondition(
    `secrets are protected by the master key ${id}, which this server does not have: its operator adds it to ${where}`,
    ErrorReason.SECRETS_UNAVAILABLE,
  );
}
