import type { KeySource } from "./field-keys.ts";

/**
 * What this process knows of entities and no later commit can make false, wherever it happens: that a key is known, that
 * there is an entity, and that its last data is not older than a minute. Never what models say of it, nor whether it is
 * deleted: a deleted one is not remembered at all, so that the data of one that is revived elsewhere are seen. Entries
 * come from answers of statements after their transaction is committed.
 */
export interface EntityCache {
  /** Those of the keys that are not known. */
  unknownKeys(tenantId: string, source: KeySource, keys: Iterable<string>): string[];
  noteKeys(tenantId: string, source: KeySource, keys: Iterable<string>): void;
  /** The entity's last data is of this minute (ms since the epoch) or later; undefined when nothing is known of it. */
  livenessMs(id: Buffer): number | undefined;
  noteEntity(id: Buffer, livenessMs: number): void;
  forgetEntity(id: Buffer): void;
}

/** A map that keeps what was used of late: two halves, the older of which is dropped when the younger is full. */
function recent<T>(max: number) {
  let young = new Map<string, T>();
  let old = new Map<string, T>();
  function set(key: string, value: T) {
    if (young.size >= max / 2 && !young.has(key)) {
      old = young;
      young = new Map();
    }
    young.set(key, value);
  }
  return {
    get(key: string): T | undefined {
      const value = young.get(key);
      if (value !== undefined) return value;
      const older = old.get(key);
      if (older !== undefined) set(key, older);
      return older;
    },
    set,
    delete(key: string) {
      young.delete(key);
      old.delete(key);
    },
  };
}

const keyOf = (id: Buffer) => id.toString("latin1");

/** An empty memory; bounded. An entity takes about 100 bytes. */
export function entityCache({ entitiesMax = 200_000, keysMax = 100_000 } = {}): EntityCache {
  // An id is a digest of its tenant, too.
  const entities = recent<number>(entitiesMax);
  const keys = recent<true>(keysMax);
  return {
    unknownKeys: (tenantId, source, all) => [...all].filter((key) => !keys.get(`${tenantId}${source}/${key}`)),
    noteKeys(tenantId, source, all) {
      for (const key of all) keys.set(`${tenantId}${source}/${key}`, true);
    },
    livenessMs: (id) => entities.get(keyOf(id)),
    noteEntity(id, livenessMs) {
      const key = keyOf(id);
      if ((entities.get(key) ?? -1) < livenessMs) entities.set(key, livenessMs);
    },
    forgetEntity: (id) => entities.delete(keyOf(id)),
  };
}
