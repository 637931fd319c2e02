import type { JsonObject } from "@bufbuild/protobuf";
import { json_bytes_max } from "#gen/belfry/limits/v1/limits_pb.ts";
import { ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { EntityRefSchema } from "#gen/opentelemetry/proto/common/v1/common_pb.ts";
import { ResourceSchema } from "#gen/opentelemetry/proto/resource/v1/resource_pb.ts";
import { optionOf } from "../../proto-option.ts";
import { attributeKey } from "../foreign-keys.ts";
import { cut, oneLine } from "../foreign-texts.ts";
import { type Attribute, attributeIn, isEmpty, jsonOf, labelText } from "./attributes.ts";
import { delimited, fieldsOf, fieldsWithin, next, valueText, type Walk } from "./fields.ts";

/** The entity that a resource is. */
export interface ResourceEntity {
  /** What identifies it: 1 to 64 texts. */
  dimensions: Record<string, string>;
  /** Makes all other attributes, as far as they fit into a model. */
  metadata(): JsonObject;
  /** The entity that it was to versions before 0.3.0, and an attribute that tells that one from others; absent: it was the same. */
  readonly earlier?: { readonly entity: ResourceEntity; readonly key: string | undefined };
}

/** Attributes of which the first one that is there identifies a resource. */
const single = ["k8s.pod.uid", "container.id", "host.id", "host.name", "service.name"];
/** Attributes of which the first one that is there distinguishes instances of a service. */
const ofInstance = ["service.instance.id", ...single.slice(0, -1)];
const dimensionsMax = 64;
const valueCharactersMax = 1024;
/** Attributes, references and their keys beyond are passed over. */
const attributesMax = 1000;
/** The metadata of a model as JSON; of the attributes of a resource as many are read as take so much in Protobuf. */
const metadataBytesMax = optionOf(ModelSchema.field.metadataFields, json_bytes_max);

const numbers = {
  attributes: ResourceSchema.field.attributes.number,
  entityRefs: ResourceSchema.field.entityRefs.number,
  idKeys: EntityRefSchema.field.idKeys.number,
};

const dimension = (attribute: Attribute | undefined) =>
  attribute === undefined ? "" : cut(oneLine(labelText(jsonOf(attribute, valueCharactersMax))), valueCharactersMax);

/**
 * The entity of a resource: by its entity references, else by its service and the instance of that, else by one of the attributes
 * above, else by all of them (the first 64 by key); `source=opentelemetry` without any. Attributes that are larger than a model are passed over.
 * @throws code 3 for what cannot be decoded
 */
export function entityOfResource(resource: Uint8Array, walk: Walk): ResourceEntity {
  const attributes = new Map<string, Attribute>();
  const references: string[][] = [];
  let [attributesLeft, keysLeft] = [attributesMax, attributesMax];
  for (const all = fieldsOf(resource, walk); next(all); ) {
    if (all.type !== delimited) continue;
    if (all.field === numbers.attributes && all.to - all.from <= metadataBytesMax && attributesLeft > 0) {
      attributesLeft -= 1;
      const attribute = attributeIn(all);
      if (attribute.key !== "" && !isEmpty(attribute)) attributes.set(attribute.key, attribute);
    } else if (all.field === numbers.entityRefs && references.length < attributesMax) {
      const keys: string[] = [];
      for (const reference = fieldsWithin(all); keysLeft > 0 && next(reference); ) {
        if (reference.type !== delimited || reference.field !== numbers.idKeys) continue;
        keysLeft -= 1;
        keys.push(valueText(reference));
      }
      references.push(keys);
    }
  }
  const { now, earlier } = identifying(references, attributes);
  const made = entityOfKeys(now ?? [...attributes.keys()], attributes);
  if (earlier === undefined) return made;
  const before = entityOfKeys(earlier, attributes);
  if (Object.keys(before.dimensions).join() === Object.keys(made.dimensions).join()) return made;
  return {
    ...made,
    earlier: { entity: before, key: now?.find((key) => !earlier.includes(key) && attributes.has(key)) },
  };
}

function entityOfKeys(keys: string[], attributes: ReadonlyMap<string, Attribute>): ResourceEntity {
  const dimensions = keys.sort().slice(0, dimensionsMax);
  return {
    dimensions:
      dimensions.length === 0
        ? { source: "opentelemetry" }
        : Object.fromEntries(dimensions.map((key) => [attributeKey(key), dimension(attributes.get(key))])),
    metadata: () => metadataOf(attributes, new Set(dimensions)),
  };
}

function metadataOf(attributes: ReadonlyMap<string, Attribute>, without: ReadonlySet<string>): JsonObject {
  let left = metadataBytesMax;
  const metadata: [string, ReturnType<typeof jsonOf>][] = [];
  for (const attribute of attributes.values()) {
    if (without.has(attribute.key)) continue;
    const bytes = attribute.key.length + attribute.to - attribute.from;
    if (bytes > left) continue;
    left -= bytes;
    metadata.push([attributeKey(attribute.key), jsonOf(attribute)]);
  }
  return Object.fromEntries(metadata);
}

const listOf = (key: string | undefined) => (key === undefined ? undefined : [key]);

/** The identifying attributes of a resource: today's, and before 0.3.0. */
interface Identifying {
  readonly now: string[] | undefined;
  readonly earlier: string[] | undefined;
}

/** All entities that a resource refers to are one here: their order means nothing, and a service on a host is both. */
function identifying(references: readonly string[][], attributes: ReadonlyMap<string, Attribute>): Identifying {
  const has = (key: string) => attributes.has(key);
  const referred = references.filter((keys) => keys.length > 0 && keys.every(has)).flat();
  if (referred.length > 0) return { now: [...new Set(referred)], earlier: undefined };
  const first = single.find(has);
  const [namespace, service] = [["service.namespace"].filter(has), attributes.get("service.name")];
  const earlier =
    service !== undefined && has("service.instance.id")
      ? ["service.instance.id", "service.name", ...namespace]
      : listOf(first);
  // What an SDK makes up where nobody has named the service.
  if (service === undefined || labelText(jsonOf(service, valueCharactersMax)).startsWith("unknown_service"))
    return { now: listOf(first), earlier };
  return { now: ["service.name", ...namespace, ...(listOf(ofInstance.find(has)) ?? [])], earlier };
}
