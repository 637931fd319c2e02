import { getOption, type JsonObject } from "@bufbuild/protobuf";
import { json_bytes_max } from "#gen/belfry/limits/v1/limits_pb.ts";
import { ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { EntityRefSchema } from "#gen/opentelemetry/proto/common/v1/common_pb.ts";
import { ResourceSchema } from "#gen/opentelemetry/proto/resource/v1/resource_pb.ts";
import { attributeKey } from "../foreign-keys.ts";
import { cut, oneLine } from "../foreign-texts.ts";
import { type Attribute, attributeIn, isEmpty, jsonOf, textOf } from "./attributes.ts";
import { delimited, fieldsOf, fieldsWithin, next, valueText, type Walk } from "./fields.ts";

/** The entity that a resource is. */
export interface ResourceEntity {
  /** What identifies it: 1 to 64 texts. */
  dimensions: Record<string, string>;
  /** Makes all other attributes, as far as they fit into a model. */
  metadata(): JsonObject;
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
/** Attributes, references and their keys beyond are passed over. */
const attributesMax = 1000;
/** The metadata of a model as JSON; of the attributes of a resource as many are read as take so much in Protobuf. */
const metadataBytesMax = getOption(ModelSchema.field.metadataFields, json_bytes_max);

const numbers = {
  attributes: ResourceSchema.field.attributes.number,
  entityRefs: ResourceSchema.field.entityRefs.number,
  idKeys: EntityRefSchema.field.idKeys.number,
};

const dimension = (attribute: Attribute | undefined) =>
  attribute === undefined ? "" : cut(oneLine(textOf(jsonOf(attribute, valueCharactersMax))), valueCharactersMax);

/**
 * The entity of a resource: by its entity references, else by the first list of attributes above, else by all of them (the
 * first 64 by key); `source=opentelemetry` without any. Attributes that are larger than a model are passed over.
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
  const keys = identifying(references, attributes) ?? [...attributes.keys()];
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

/** All entities that a resource refers to are one here: their order means nothing, and a service on a host is both. */
function identifying(
  references: readonly string[][],
  attributes: ReadonlyMap<string, Attribute>,
): string[] | undefined {
  const complete = (keys: readonly string[]) => keys.length > 0 && keys.every((key) => attributes.has(key));
  const referred = references.filter(complete).flat();
  if (referred.length > 0) return [...new Set(referred)];
  const found = identities.find(({ keys }) => complete(keys));
  return found && [...found.keys, ...(found.optional ?? []).filter((key) => attributes.has(key))];
}
