import { hash } from "node:crypto";
import { ResourceMetricsSchema } from "#gen/opentelemetry/proto/metrics/v1/metrics_pb.ts";
import { delimited, fieldsOf, next, pauseDue, undecodable, valueBytes, type Walk } from "./fields.ts";
import { entityOfResource, type ResourceEntity } from "./resource.ts";

export const none: Uint8Array = new Uint8Array();

/** The members of one field that are messages; undefined where it is time for a pause. */
export function* members(bytes: Uint8Array, field: number, walk: Walk): Generator<Uint8Array | undefined> {
  for (const all = fieldsOf(bytes, walk); next(all); ) {
    if (pauseDue(walk)) yield undefined;
    if (all.field === field && all.type === delimited) yield valueBytes(all);
  }
}

/** The only member of a field; empty where there is none. Yields where it is time for a pause. */
export function* member(bytes: Uint8Array, field: number, walk: Walk): Generator<undefined, Uint8Array> {
  let found: Uint8Array | undefined;
  for (const each of members(bytes, field, walk)) {
    if (each === undefined) yield undefined;
    else if (found !== undefined) throw undecodable("a member that comes once comes twice");
    else found = each;
  }
  return found ?? none;
}

/** A resource of a request: the same object for all that it holds. */
export interface ResourcePart {
  readonly bytes: Uint8Array;
  /** The digest of its bytes, set when it is looked up. */
  digest?: Buffer;
  /** Set when it is read. */
  entity?: ResourceEntity;
  /** Its identity has been asked for. */
  settled?: true;
}

/** Makes the digest of a resource, once. */
export function resourceDigest(resource: ResourcePart): Buffer {
  resource.digest ??= hash("sha256", resource.bytes, "buffer");
  return resource.digest;
}

/** Makes a resource the entity that it was to versions before. @throws code 3 */
export function keepEarlier(resource: ResourcePart, walk: Walk): void {
  const { earlier } = entityOf(resource, walk);
  if (earlier === undefined) return;
  resource.entity = earlier.entity;
  // What is remembered by its digest is of another entity.
  resource.digest = hash("sha256", Buffer.concat([resourceDigest(resource), Buffer.from("earlier")]), "buffer");
}

/** Reads a resource, once. @throws code 3 */
export function entityOf(resource: ResourcePart, walk: Walk): ResourceEntity {
  resource.entity ??= entityOfResource(resource.bytes, walk);
  return resource.entity;
}

/** What an export holds of one resource. */
export interface ResourceData {
  readonly resource: ResourcePart;
  /** The whole ResourceMetrics or ResourceLogs. */
  readonly bytes: Uint8Array;
}

// The numbers are the same in requests of metrics and of logs.
const resourcesNumber = 1;
const resourceNumber = ResourceMetricsSchema.field.resource.number;

/** Each ResourceMetrics or ResourceLogs of an export; undefined where it is time for a pause. */
export function* resourcesIn(request: Uint8Array, walk: Walk): Generator<ResourceData | undefined> {
  for (const bytes of members(request, resourcesNumber, walk))
    yield bytes && { bytes, resource: { bytes: yield* member(bytes, resourceNumber, walk) } };
}
