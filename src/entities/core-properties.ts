/** What core properties are made from: an entity's row, or the part of it that another search has read. */
export interface EntityFacts {
  id: string;
  tenantId: string;
  name: string;
  dimensions: Record<string, string>;
  metadata: Record<string, unknown>;
}

const WELL_KNOWN = ["device", "source", "source-type", "parent"];

function texts(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.filter((item) => ["string", "number", "boolean"].includes(typeof item)).map(String);
}

/** The schemas that an entity follows: the base one and the `type` that its model names. */
export function schemaIds(metadata: Record<string, unknown>): string[] {
  return typeof metadata.type === "string" && metadata.type !== "" ? ["Base.Entity", metadata.type] : ["Base.Entity"];
}

/**
 * The core properties of an entity: its dimensions, its name, the well-known and organizer (`_orgs_…`) keys of its
 * metadata, and the service's own `_svc_…` keys. Values are lists of strings.
 */
export function coreProperties(entity: EntityFacts): Record<string, string[]> {
  // Not by assignment: a dimension may be called __proto__.
  const properties = Object.fromEntries(Object.entries(entity.dimensions).map(([key, value]) => [key, [value]]));
  properties.name = [entity.name];
  for (const [key, value] of Object.entries(entity.metadata)) {
    if (!WELL_KNOWN.includes(key) && !key.startsWith("_orgs_")) continue;
    const list = texts(value);
    if (list.length > 0 && !Object.hasOwn(entity.dimensions, key)) properties[key] = list;
  }
  properties._svc_direct_entity_id = [entity.id];
  properties._svc_tenant_id = [entity.tenantId];
  properties._svc_schemaIds = schemaIds(entity.metadata);
  return properties;
}
