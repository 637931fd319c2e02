import { hash } from "node:crypto";
import { copyOf, knownBytes } from "../known-bytes.ts";
import type { Walk } from "./fields.ts";
import { entityOfResource } from "./resource.ts";

/** A resource of a request: the same object for all that it holds. */
export interface ResourcePart {
  readonly bytes: Uint8Array;
  /** Set when it is looked up. */
  known?: KnownResource;
}

/** What is remembered of a resource. */
export interface KnownResource {
  readonly id: number;
  readonly dimensions: Record<string, string>;
  /** Digests: of tenant and dimensions, and of all other attributes, which is empty where there are none. */
  readonly entity: string;
  readonly metadata: string;
  /** About what its dimensions take, bytes. */
  readonly weight: number;
}

/** Finds what is known of a resource, by its bytes. @throws code 3 for what cannot be decoded */
export type ResourceFinder = (tenantId: string, resource: ResourcePart, walk: Walk) => KnownResource;

const rememberedBytesMax = 16 * 2 ** 20;
/** Memory of a resource and of a dimension, beside their characters. */
const [resourceBytes, dimensionBytes] = [700, 64];
const characterBytes = 2;
const digestOf = (text: string) => hash("sha256", text, "base64");

/** Remembers resources by the digests of their bytes; forgets what is used least lately. */
export function knownResources(): ResourceFinder {
  const resources = knownBytes<KnownResource>(rememberedBytesMax);
  let ids = 0;

  return (tenantId, resource, walk) => {
    if (resource.known !== undefined) return resource.known;
    const digest = hash("sha256", resource.bytes, "buffer");
    const own = digest.readInt32LE(0);
    let found = resources.find(tenantId, own, digest, 0, digest.length);
    if (found === undefined) {
      const { dimensions, metadata } = entityOfResource(resource.bytes, walk);
      const others = JSON.stringify(metadata());
      let weight = 0;
      for (const key in dimensions)
        weight += dimensionBytes + (key.length + (dimensions[key] as string).length) * characterBytes;
      found = {
        id: ids++,
        dimensions,
        weight,
        entity: digestOf(tenantId + JSON.stringify(dimensions)),
        metadata: others === "{}" ? "" : digestOf(others),
      };
      resources.set(tenantId, own, copyOf(digest, 0, digest.length), found, resourceBytes + weight);
    }
    resource.known = found;
    return found;
  };
}
