import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** A data directory held by this process. */
export interface DataLock {
  release(): void;
}

/**
 * Takes the data directory for this process, or answers undefined when another one has it. The lock is the kernel's (a
 * file lock, taken through SQLite because Node has none of its own): it ends with the process, also by kill -9, cannot
 * go stale, and holds across containers that share the directory.
 */
export function lockData(dataDir: string): DataLock | undefined {
  const file = new DatabaseSync(join(dataDir, "lock"), { timeout: 0 });
  try {
    file.exec("begin exclusive");
  } catch (error) {
    file.close();
    // SQLITE_BUSY
    if ((error as { errcode?: number }).errcode === 5) return undefined;
    throw error;
  }
  return { release: () => file.close() };
}
