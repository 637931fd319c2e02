import { chmodSync, closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StartError } from "../start-error.ts";

/** A data directory held by this process. */
export interface DataLock {
  release(): void;
}

/**
 * Takes the data directory for this process, or answers undefined when another one has it. The lock is the kernel's (a
 * file lock, taken through SQLite because Node has none of its own): it ends with the process, also by kill -9, cannot
 * go stale, and holds across containers that share the directory.
 * @throws StartError when the directory cannot be locked
 */
export function lockData(dataDir: string): DataLock | undefined {
  const path = join(dataDir, "lock");
  let file: DatabaseSync | undefined;
  try {
    // Every account that may read the file could hold a lock on it, too. It is not opened when it is there: closing it would end a lock
    // that this process holds.
    if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
    chmodSync(path, 0o600);
    file = new DatabaseSync(path, { timeout: 0 });
    // No file for a journal: nothing is ever written.
    file.exec("pragma journal_mode = memory; begin exclusive");
    const held = file;
    return { release: () => held.close() };
  } catch (error) {
    file?.close();
    // SQLITE_BUSY
    if ((error as { errcode?: number }).errcode === 5) return undefined;
    throw new StartError(`cannot lock the data directory ${dataDir}: ${(error as Error).message}`);
  }
}
