import type { JsonObject } from "@bufbuild/protobuf";
import type { AnyValue, KeyValue } from "#gen/opentelemetry/proto/common/v1/common_pb.ts";
import type { Resource } from "#gen/opentelemetry/proto/resource/v1/resource_pb.ts";
import { attributeKey } from "../foreign-keys.ts";
import { cut, oneLine } from "../foreign-texts.ts";
import { jsonOf, textOf } from "./attributes.ts";

/** The entity that a resource is. */
export interface ResourceEntity {
  /** What identifies it: 1 to 64 texts. */
  dimensions: Record<string, string>;
  /** All other attributes. */
  metadata: JsonObject;
}

/** Attributes that identify a resource, by the semantic conventions: the first list of which all are there. */
const identities: readonly { keys: readonly string[]; optional?: readonly string[] }[] = [
  { keys: ["service.instance.id", "service.name"], optional: ["service.namespace"] },
  { keys: ["k8s.pod.uid"] },
  { keys: ["container.id"] },
  { keys: ["host.id"] },
  { keys: ["host.name"] },
  { keys: ["service.name"] },
];
const dimensionsMax = 64;

const valueCharactersMax = 1024;

const dimension = (value: AnyValue | undefined) => cut(oneLine(textOf(value)), valueCharactersMax);

/**
 * The entity of a resource: by its entity references, else by the first list of attributes above, else by all of them (the
 * first 64 by key); `source=opentelemetry` without any.
 */
export function entityOfResource(resource: Resource | undefined): ResourceEntity {
  const attributes = new Map<string, KeyValue>();
  for (const each of resource?.attributes ?? [])
    if (each.key !== "" && textOf(each.value) !== "") attributes.set(each.key, each);
  const keys = identifying(resource, attributes) ?? [...attributes.keys()];
  const dimensions = keys.sort().slice(0, dimensionsMax);
  const within = new Set(dimensions);
  const metadata = [...attributes.values()].filter(({ key }) => !within.has(key));
  return {
    dimensions:
      dimensions.length === 0
        ? { source: "opentelemetry" }
        : Object.fromEntries(dimensions.map((key) => [attributeKey(key), dimension(attributes.get(key)?.value)])),
    metadata: Object.fromEntries(metadata.map(({ key, value }) => [attributeKey(key), jsonOf(value)])),
  };
}

/** All entities that a resource refers to are one here: their order means nothing, and a service on a host is both. */
function identifying(resource: Resource | undefined, attributes: ReadonlyMap<string, KeyValue>): string[] | undefined {
  const complete = (keys: readonly string[]) => keys.length > 0 && keys.every((key) => attributes.has(key));
  const referred = (resource?.entityRefs ?? [])
    .filter(({ idKeys }) => complete(idKeys))
    .flatMap(({ idKeys }) => idKeys);
  if (referred.length > 0) return [...new Set(referred)];
  const found = identities.find(({ keys }) => complete(keys));
  return found && [...found.keys, ...(found.optional ?? []).filter((key) => attributes.has(key))];
}
