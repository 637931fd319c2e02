import { LRUCache } from "lru-cache";
import type { EarlierIdentity } from "../../entities/earlier-identity.ts";
import type { OperationCall } from "../integration.ts";
import type { Walk } from "./fields.ts";
import { entityOf, keepEarlier, type ResourcePart, resourceDigest } from "./resource-parts.ts";

/** Decides under which identity resources are entities. */
export interface Identities {
  /** Gives a resource its earlier identity where its entity is stored under that; a promise where the database is asked. @throws code 3 */
  settle(
    resource: ResourcePart,
    call: Pick<OperationCall, "tenantId" | "nowMs">,
    walk: Walk,
  ): Promise<void> | undefined;
}

/** Asks whether a tenant's entity is stored under its earlier identity. */
export type KeepsIdentity = (tenantId: string, earlier: EarlierIdentity) => Promise<boolean>;

const rememberedCharactersMax = 8 * 1024 * 1024;
/** Less than what `reidentifyEntities` allows for. */
const keptMs = 30_000;

/** Remembers which resources keep their earlier identity; that one does not is remembered for good. */
export function identities(keepsIdentity: KeepsIdentity): Identities {
  const known = new LRUCache<string, { keeps: boolean; atMs: number }>({
    maxSize: rememberedCharactersMax,
    sizeCalculation: (_, key) => key.length,
  });
  return {
    settle(resource, { tenantId, nowMs }, walk) {
      if (resource.settled) return undefined;
      resource.settled = true;
      const key = `${tenantId} ${resourceDigest(resource).toString("latin1")}`;
      const note = (keeps: boolean) => {
        known.set(key, { keeps, atMs: nowMs() });
        if (keeps) keepEarlier(resource, walk);
      };
      const before = known.get(key);
      if (before !== undefined && (!before.keeps || nowMs() - before.atMs < keptMs)) {
        if (before.keeps) keepEarlier(resource, walk);
        return undefined;
      }
      const { earlier } = entityOf(resource, walk);
      if (earlier === undefined) return void note(false);
      return keepsIdentity(tenantId, { ...earlier.entity, key: earlier.key }).then(note);
    },
  };
}
