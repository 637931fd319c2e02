import type { KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { MasterKey } from "../config/parsers.ts";
import type { Config } from "../config/settings.ts";
import { newDataKey } from "./envelope.ts";
import { readKeyFile } from "./key-file.ts";

/** The master keys that this process has, from its settings and from files. */
export interface Keyring {
  /** All of them, the newest first. */
  all(): readonly MasterKey[];
  /** The key of this id. One that is not known is looked for in the files again. */
  find(id: string): KeyObject | undefined;
  /** Reads the files again. */
  read(): void;
  /** The file in the data directory whose keys the service makes itself; undefined where the operator gives the keys. */
  readonly ownFile: string | undefined;
}

type Sources = Pick<Config, "masterKeys" | "masterKeysFile" | "databaseUrl" | "dataDir">;

/**
 * Reads the master keys: those of the settings first, then those of the configured file, then, on the embedded database,
 * those of `master.key` in the data directory. @throws StartError when a file cannot be read or is malformed
 */
export function keyring({ masterKeys, masterKeysFile, databaseUrl, dataDir }: Sources): Keyring {
  const local = databaseUrl === undefined ? join(dataDir, "master.key") : undefined;
  const given = masterKeys.length > 0 || masterKeysFile !== undefined;
  let known: readonly MasterKey[] = [];
  // Also those that a file no longer has: a call may hold what it read before a rotation.
  const seen = new Map<string, KeyObject>();

  function read() {
    const files = [masterKeysFile, local !== undefined && existsSync(local) ? local : undefined];
    known = [...masterKeys, ...files.flatMap((path) => (path === undefined ? [] : readKeyFile(path)))];
    for (const { id, key } of known.toReversed()) seen.set(id, key);
  }

  read();
  return {
    all: () => known,
    read,
    find(id) {
      if (!seen.has(id)) read();
      return seen.get(id);
    },
    ownFile: given ? undefined : local,
  };
}

/** A new master key, numbered on from those that are or were there. */
export function newMasterKey(taken: readonly string[]): MasterKey {
  const numbers = taken.map((id) => Number(/^local-(\d+)$/.exec(id)?.[1] ?? 0));
  return { id: `local-${Math.max(0, ...numbers) + 1}`, key: newDataKey() };
}
