import { LRUCache } from "lru-cache";
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

// By `max` the map would take its memory before it is used.
const counted = { sizeCalculation: () => 1 };
const keyOf = (id: Buffer) => id.toString("latin1");

/** An empty memory; bounded. An entity takes about 100 bytes. */
export function entityCache({ entitiesMax = 200_000, keysMax = 100_000 } = {}): EntityCache {
  // An id is a digest of its tenant, too.
  const entities = new LRUCache<string, number>({ maxSize: entitiesMax, ...counted });
  const keys = new LRUCache<string, true>({ maxSize: keysMax, ...counted });
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
