import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Condition, Field, FieldValue, Indexed, Resolver } from "../clause/field.ts";
import { numericText } from "../clause/numeric-text.ts";
import { holds } from "../clause/operations.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { columnNames, entityFields } from "./columns.ts";
import { coreProperty, isCoreKey, OWN_CORE_KEYS, schemaIds } from "./core-properties.ts";
import { idText, parseIds } from "./identity.ts";
import type { EntityRow } from "./messages.ts";
import { corePropertyTerms, customPropertyTerms, dimensionTerms, haveTerms, type Terms } from "./terms.ts";
import { anyTextContains } from "./texts.ts";

type EntityField = Field<EntityRow>;

/** What helps to resolve the keys of one tenant's entities. */
export interface Known {
  tenantName?: string;
  /** The keys that metadata of the tenant have: a bare key that is none of them is a dimension. */
  metadataKeys?: ReadonlySet<string>;
}

/** What the key of a field means: a column, or a key of one of the maps; `bare`: of the dimensions, else of the metadata. */
export type FieldKey = { kind: "column" | "bare" | keyof typeof PREFIXES; key: string };

/** What keys of fields begin with, by the map that they are keys of. */
export const PREFIXES = {
  coreProperty: "coreProperties.",
  dimension: "dimensions.",
  customProperty: "customProperties.",
  metadata: "metadataFields.",
} as const;

const kinds = Object.keys(PREFIXES) as (keyof typeof PREFIXES)[];

/** Reads the key of a field, as clauses spell it. */
export function fieldKey(key: string): FieldKey {
  for (const kind of kinds) {
    if (key.startsWith(PREFIXES[kind])) return { kind, key: key.slice(PREFIXES[kind].length) };
  }
  return { kind: columnNames.includes(key) ? "column" : "bare", key };
}

const member = (object: Record<string, unknown>, key: string) =>
  Object.hasOwn(object, key) ? (object[key] as FieldValue) : undefined;

const customProperty = (key: string): EntityField => ({
  type: "json",
  sql: (db) => db`(custom_properties -> ${key}::text)`,
  get: (row) => member(row.custom_properties, key),
});

const metadata = (key: string): EntityField => ({
  type: "json",
  sql: (db) => db`(metadata -> ${key}::text)`,
  get: (row) => member(row.metadata, key),
});

/** The entities that have one of the terms. */
function foundByTerms(db: Db, tenantId: string, found: Terms | undefined): Indexed | undefined {
  if (found === undefined) return undefined;
  if (found.terms.length === 0) return { sql: () => db`false`, exact: true, few: true, by: "entities_terms" };
  return {
    sql: () => haveTerms(db, tenantId, "one", found.terms),
    exact: found.exact,
    few: true,
    broad: found.broad ?? false,
    by: "entities_terms",
  };
}

/** Whether a condition asks for text that is no number. */
function asksForOtherText([only]: Condition): boolean {
  if (only?.operation === Operation.OP_STARTS_WITH) return true;
  return (
    only?.operation === Operation.OP_EQUALS && typeof only.value === "string" && numericText(only.value) === undefined
  );
}

/** How clauses read the rows of `entities`, its columns by their bare names, and which indexes answer them. */
export function entityResolver(tenantId: string, known: Known = {}): Resolver<EntityRow> {
  const among = (db: Db, found: Terms | undefined) => foundByTerms(db, tenantId, found);
  const answered = (terms: (key: string, condition: Condition) => Terms | undefined, key: string) => ({
    index: (db: Db, condition: Condition) => among(db, terms(key, condition)) ?? anyTextContains(db, condition),
  });

  function dimension(key: string): EntityField {
    return {
      type: "text",
      sql: (db) => db`(dimensions ->> ${key}::text)`,
      get: ({ dimensions }) => member(dimensions, key),
      ...answered(dimensionTerms, key),
    };
  }

  function core(key: string): EntityField {
    const get = (row: EntityRow) => coreProperty({ ...row, id: idText(row.id), tenantId }, key);
    if (!OWN_CORE_KEYS.includes(key)) {
      const sql = (db: Db) => db`coalesce(dimensions -> ${key}::text, core_properties -> ${key}::text)`;
      return { type: "json", sql, get, ...answered(corePropertyTerms, key) };
    }
    if (key === "name") return { ...(entityFields.get("name")?.(tenantId, known) as EntityField), get };
    const id = entityFields.get("id")?.(tenantId, known) as EntityField;
    if (key === "_svc_direct_entity_id") return { ...id, get };
    if (key === "_svc_tenant_id") return { type: "text", sql: (db) => db`tenant_id::text`, get };
    return { ...schemas(), get };
  }

  function schemas(): EntityField {
    return {
      type: "json",
      sql: (db) => db`coalesce(core_properties -> '_svc_schemaIds', '["Base.Entity"]')`,
      get: ({ metadata }) => schemaIds(metadata),
      index: (db, condition) =>
        holds("Base.Entity", condition) ? undefined : among(db, corePropertyTerms("_svc_schemaIds", condition)),
    };
  }

  function bare(key: string): EntityField {
    const get = ({ dimensions, metadata }: EntityRow) => member(dimensions, key) ?? member(metadata, key);
    if (known.metadataKeys?.has(key) === false) return { ...dimension(key), get };
    const field: EntityField = {
      type: "json",
      sql: (db) => db`coalesce(dimensions -> ${key}::text, metadata -> ${key}::text)`,
      get,
    };
    // Core properties are texts, so only what asks for other text finds all of the metadata that they are made of.
    return isCoreKey(key) ? { ...field, index: (db, condition) => textIndex(db, key, condition) } : field;
  }

  function textIndex(db: Db, key: string, condition: Condition): Indexed | undefined {
    const found = asksForOtherText(condition)
      ? among(db, corePropertyTerms(key, condition))
      : anyTextContains(db, condition);
    return found && { ...found, exact: false };
  }

  return {
    field(name) {
      const { kind, key } = fieldKey(name);
      switch (kind) {
        case "column":
          return key === "schemaIds" ? schemas() : entityFields.get(key)?.(tenantId, known);
        case "coreProperty":
          return core(key);
        case "dimension":
          return dimension(key);
        case "customProperty":
          return { ...customProperty(key), ...answered(customPropertyTerms, key) };
        case "metadata":
          return metadata(key);
        case "bare":
          return bare(key);
      }
    },
    withIds: (db, ids) => db`id = any(${byteaArray(parseIds(ids))}::bytea[])`,
    idsOf: (row) => [idText(row.id)],
  };
}
