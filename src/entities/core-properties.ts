import { entityId, idText, parseId } from "./identity.ts";

/** What core properties are made from: an entity's row, or the part of it that another search has read. */
export interface EntityFacts {
  id: string;
  tenantId: string;
  name: string;
  dimensions: Record<string, string>;
  metadata: Record<string, unknown>;
}

const WELL_KNOWN = ["device", "source", "source-type", "parent"];
const BASE_SCHEMA = "Base.Entity";

/** The core properties that are made of ids, by the metadata that name those entities. */
const relations = Object.entries({
  _svc_parent_entity_id: "parent",
  _svc_impactedBy: "impactFromDimensions",
  _svc_impactedEntities: "impactToDimensions",
});

/** The core properties that a dimension never stands for. */
export const OWN_CORE_KEYS: readonly string[] = ["name", "_svc_direct_entity_id", "_svc_tenant_id", "_svc_schemaIds"];

function texts(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.filter((item) => ["string", "number", "boolean"].includes(typeof item)).map(String);
}

/** The schemas that an entity follows: the base one and the `type` that its model names. */
export function schemaIds(metadata: Record<string, unknown>): string[] {
  return typeof metadata.type === "string" && metadata.type !== "" ? [BASE_SCHEMA, metadata.type] : [BASE_SCHEMA];
}

/** Whether the metadata field of this key is a core property of the same key. */
export function isCoreKey(key: string): boolean {
  return WELL_KNOWN.includes(key) || key.startsWith("_orgs_");
}

/** The id of an entity that metadata name, by its id or by its dimensions as `key=value,key=value`. */
function namedEntity(tenantId: string, text: string): string | undefined {
  if (parseId(text) !== undefined) return text;
  const pairs = text.split(",").map((pair) => /^([^=]+)=(.+)$/.exec(pair.trim())?.slice(1));
  if (!pairs.every((pair) => pair !== undefined)) return undefined;
  return idText(entityId(tenantId, Object.fromEntries(pairs)));
}

/**
 * The core properties that metadata make: the well-known and organizer (`_orgs_…`) keys, the schemas when there is more
 * than the base one, and the entities that are named, by their ids. A dimension of the same key takes its place.
 */
export function coreFacts(
  tenantId: string,
  dimensions: Record<string, string>,
  metadata: Record<string, unknown>,
): Record<string, string[]> {
  const made: Record<string, string[]> = {};
  const add = (key: string, list: string[]) => {
    if (list.length > 0 && !Object.hasOwn(dimensions, key)) made[key] = list;
  };
  for (const key of Object.keys(metadata)) if (isCoreKey(key)) add(key, texts(metadata[key]));
  for (const [key, from] of relations) {
    if (!Object.hasOwn(metadata, from)) continue;
    add(
      key,
      texts(metadata[from]).flatMap((text) => namedEntity(tenantId, text) ?? []),
    );
  }
  const schemas = schemaIds(metadata);
  if (schemas.length > 1) made._svc_schemaIds = schemas;
  return made;
}

/**
 * The core properties of an entity: its dimensions, its name, what its metadata make of them, and the service's own
 * `_svc_…` keys. Values are lists of strings.
 */
export function coreProperties(entity: EntityFacts): Record<string, string[]> {
  const { dimensions, metadata, tenantId } = entity;
  // Copied first: to set a key such as `__proto__` that an object does not have would be another thing.
  const all: Record<string, string | string[]> = { ...dimensions };
  for (const key in all) all[key] = [all[key] as string];
  return Object.assign(all as Record<string, string[]>, coreFacts(tenantId, dimensions, metadata), {
    name: [entity.name],
    _svc_direct_entity_id: [entity.id],
    _svc_tenant_id: [tenantId],
    _svc_schemaIds: schemaIds(metadata),
  });
}

/** The value of one core property; undefined when the entity has none. */
export function coreProperty(entity: EntityFacts, key: string): string[] | undefined {
  switch (key) {
    case "name":
      return [entity.name];
    case "_svc_direct_entity_id":
      return [entity.id];
    case "_svc_tenant_id":
      return [entity.tenantId];
    case "_svc_schemaIds":
      return schemaIds(entity.metadata);
  }
  if (Object.hasOwn(entity.dimensions, key)) return [entity.dimensions[key] as string];
  const facts = coreFacts(entity.tenantId, entity.dimensions, entity.metadata);
  return Object.hasOwn(facts, key) ? facts[key] : undefined;
}
