import { hash } from "node:crypto";
import { recentMap } from "../recent-map.ts";
import type { Walk } from "./fields.ts";
import { entityOfResource, type ResourceEntity } from "./resource.ts";

/** A resource of a request: the same object for all that it holds. */
export interface ResourcePart {
  readonly bytes: Uint8Array;
  /** Of its bytes; set when it is looked up. */
  digest?: Buffer;
  /** Set when it is read. */
  entity?: ResourceEntity;
}

/** Digests of what a resource says. */
export interface KnownResource {
  /** Of tenant and dimensions. */
  readonly entity: string;
  /** Of all other attributes; empty where there are none. */
  readonly metadata: string;
}

/** Finds what is known of a resource, by its bytes. @throws code 3 for what cannot be decoded */
export type ResourceFinder = (tenantId: string, resource: ResourcePart, walk: Walk) => KnownResource;

const rememberedCharactersMax = 16 * 2 ** 20;
const digestOf = (text: string) => hash("sha256", text, "base64");

/** Sets the digest of a resource, and returns it. */
export function resourceDigest(resource: ResourcePart): Buffer {
  resource.digest ??= hash("sha256", resource.bytes, "buffer");
  return resource.digest;
}

/** Reads a resource, once. @throws code 3 */
export function entityOf(resource: ResourcePart, walk: Walk): ResourceEntity {
  resource.entity ??= entityOfResource(resource.bytes, walk);
  return resource.entity;
}

/** Remembers resources by the digests of their bytes; forgets what is used least lately. */
export function knownResources(): ResourceFinder {
  const resources = recentMap<KnownResource>(rememberedCharactersMax, 400);
  return (tenantId, resource, walk) => {
    const key = `${tenantId} ${resourceDigest(resource).toString("latin1")}`;
    let found = resources.get(key);
    if (found === undefined) {
      const { dimensions, metadata } = entityOf(resource, walk);
      const others = JSON.stringify(metadata());
      const entity = digestOf(tenantId + JSON.stringify(dimensions));
      found = { entity, metadata: others === "{}" ? "" : digestOf(others) };
      resources.set(key, found);
    }
    return found;
  };
}
