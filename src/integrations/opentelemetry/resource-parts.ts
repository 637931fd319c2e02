import { hash } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { ResourceMetricsSchema } from "#gen/opentelemetry/proto/metrics/v1/metrics_pb.ts";
import { refusalOf } from "../../wire/status.ts";
import type { OperationCall } from "../integration.ts";
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
  /** The whole ResourceMetrics, ResourceLogs or ResourceSpans. */
  readonly bytes: Uint8Array;
}

// The numbers are the same in requests of metrics, logs and traces.
const resourcesNumber = 1;
const resourceNumber = ResourceMetricsSchema.field.resource.number;

/** Each ResourceMetrics, ResourceLogs or ResourceSpans of an export; undefined where it is time for a pause. */
export function* resourcesIn(request: Uint8Array, walk: Walk): Generator<ResourceData | undefined> {
  for (const bytes of members(request, resourcesNumber, walk))
    yield bytes && { bytes, resource: { bytes: yield* member(bytes, resourceNumber, walk) } };
}

/** A log record or span, and what it is of. */
export interface RecordPart {
  readonly resource: ResourcePart;
  readonly bytes: Uint8Array;
}

/** Where the records of an export lie: the numbers of the fields that hold scopes and records, what these are, and how many a request may have. */
interface Records {
  readonly scopes: number;
  readonly records: number;
  readonly what: string;
  readonly max: number;
}

/** Records, scopes and resources that a request may have for each record. */
const partsEach = 4;

/** Each record of an export; undefined for each resource and scope, and where it is time for a pause. */
function* recordsIn(request: Uint8Array, { scopes, records }: Records, walk: Walk): Generator<RecordPart | undefined> {
  for (const found of resourcesIn(request, walk)) {
    yield undefined;
    if (found === undefined) continue;
    const { resource } = found;
    for (const scope of members(found.bytes, scopes, walk)) {
      yield undefined;
      if (scope === undefined) continue;
      for (const bytes of members(scope, records, walk)) yield bytes && { resource, bytes };
    }
  }
}

/** Calls `take` with each record. @throws code 3 where it is no Protobuf, code 8 where it holds too much */
export async function eachRecord(
  request: Uint8Array,
  of: Records,
  call: OperationCall,
  walk: Walk,
  take: (part: RecordPart) => Promise<void> | undefined,
): Promise<void> {
  const tooMany = (max: number, what: string) =>
    refusalOf(Code.ResourceExhausted, 413, `a request may have at most ${max} ${what}; send fewer at once`);
  let [count, parts] = [0, 0];
  for (const part of recordsIn(request, of, walk)) {
    const wait = call.pace();
    if (wait !== undefined) await wait;
    parts += 1;
    if (parts > of.max * partsEach) throw tooMany(of.max * partsEach, `${of.what}, scopes and resources`);
    if (part === undefined) continue;
    count += 1;
    if (count > of.max) throw tooMany(of.max, of.what);
    const taken = take(part);
    if (taken !== undefined) await taken;
  }
}
