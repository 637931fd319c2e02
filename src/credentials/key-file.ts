import {
  chownSync,
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { type MasterKey, readMasterKeys, SettingError } from "../config/parsers.ts";
import { StartError } from "../db/start-error.ts";

/** The master keys of a file, a line each. @throws StartError when it cannot be read or is malformed */
export function readKeyFile(path: string): readonly MasterKey[] {
  try {
    return readMasterKeys(readFileSync(path, "utf8"));
  } catch (error) {
    if (error instanceof SettingError) throw new StartError(`the master key file ${path} ${error.message}`);
    const { code, message } = error as NodeJS.ErrnoException;
    throw new StartError(`cannot read the master key file ${path} (${code ?? message})`);
  }
}

/** Makes the file unless there is one, which is left as it is; whole or not at all. */
export function makeKeyFile(path: string, keys: readonly MasterKey[]): void {
  const fresh = written(path, keys);
  try {
    linkSync(fresh, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(fresh);
  }
  syncDir(path);
}

/**
 * Writes the file again, for the same account: an administrator's command must not take it away from the server. The
 * caller holds the rows of master_keys, so that no key that another process has added is lost.
 */
export function replaceKeyFile(path: string, keys: readonly MasterKey[]): void {
  const { uid, gid } = statSync(path);
  const fresh = written(path, keys);
  chownSync(fresh, uid, gid);
  renameSync(fresh, path);
  syncDir(path);
}

/** A new file beside it, on disk and readable by this account alone. */
function written(path: string, keys: readonly MasterKey[]): string {
  const fresh = `${path}.${process.pid}.new`;
  rmSync(fresh, { force: true });
  const file = openSync(fresh, "wx", 0o600);
  try {
    fchmodSync(file, 0o600);
    writeSync(file, keys.map(({ id, key }) => `${id}:${key.export().toString("base64")}\n`).join(""));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return fresh;
}

function syncDir(path: string) {
  const dir = openSync(dirname(path), "r");
  try {
    fsyncSync(dir);
  } finally {
    closeSync(dir);
  }
}
