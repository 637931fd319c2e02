import { sql } from "drizzle-orm";
import { bigint, boolean, index, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { bigintMs, bytea, jsonb, tenantId, text } from "../db/columns.ts";

/**
 * One row an entity, made by its first model, point or event. A deleted entity keeps its row, so that its series and
 * events stay readable and a late point does not bring it back; the row goes when it has none any more.
 */
export const entities = pgTable(
  "entities",
  {
    tenantId: tenantId(),
    id: bytea("id").notNull(),
    name: text("name").notNull(),
    dimensions: jsonb("dimensions").notNull().$type<Record<string, string>>(),
    metadata: jsonb("metadata").notNull().$type<Record<string, unknown>>(),
    /** What clauses call core properties beside the dimensions: made of the metadata, each a list of texts. */
    coreProperties: jsonb("core_properties").notNull().default({}).$type<Record<string, string[]>>(),
    /** Set by users and updaters, not by models: strings, numbers, booleans and lists of them. */
    customProperties: jsonb("custom_properties").notNull().default({}).$type<Record<string, unknown>>(),
    /** The production state that its model names; null: none, so it is in production. */
    modelProductionState: bigint("model_production_state", { mode: "bigint" }),
    /** The production state that a maintenance window gives it, instead of the model's, while the window lasts. */
    windowProductionState: bigint("window_production_state", { mode: "bigint" }),
    /** The priority that its model names; null: none. */
    priority: bigint("priority", { mode: "bigint" }),
    /** Timestamp of the model that described it last; null while only points and events are known. */
    modelMs: bigintMs("model_ms"),
    createdMs: bigintMs("created_ms").notNull(),
    updatedMs: bigintMs("updated_ms").notNull(),
    /** Latest data of any kind, to the minute. */
    livenessMs: bigintMs("liveness_ms").notNull(),
    /** What the last model says of it, as a digest (`contentHash` of src/entities/put.ts); null: not known, so the next model is written. */
    contentHash: bytea("content_hash"),
    /** Timestamp of the model that deleted it, or of the last data of one that became idle. */
    deletedMs: bigintMs("deleted_ms"),
    /** True: it was deleted because no data came, so any data bring it back. */
    idle: boolean("idle"),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    // Names of those that events still stand on.
    index("entities_deleted").on(table.tenantId, table.name).where(sql`deleted_ms is not null`),
    index("entities_name").on(table.tenantId, table.name, table.id).where(sql`deleted_ms is null`),
    // An id is a digest of its tenant, too, so no other has it. A look-up is shorter than by the primary key.
    index("entities_id").using("hash", table.id).where(sql`deleted_ms is null`),
    // The metadata are in no index, so that models which change nothing else of their entity touch none. A term begins
    // with its tenant's; a column for it would be a list of all of its rows, to be met with each term's. No statistics are
    // gathered on terms, texts and JSON (migrations/0001_first_release.sql): no plan needs them.
    index("entities_terms").using(
      "gin",
      sql`entity_terms(tenant_id, name, dimensions, core_properties, custom_properties)`,
    ),
    index("entities_text").using(
      "gin",
      table.tenantId,
      sql`entity_text(dimensions, core_properties, custom_properties) gin_trgm_ops`,
    ),
    // By their parents, of which an entity may have several. Written at once: whole portions of parents are looked up while
    // models come in, and would read a list of pending entries each time. Deleted entities too: a condition on them would make
    // PostgreSQL expect so few rows of a tenant that it read them all (design/statements).
    index("entities_by_parents")
      .using("gin", sql`coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id')`)
      .with({ fastupdate: false })
      .where(
        sql`coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id') is not null`,
      ),
  ],
);

/** Keys that entities of a tenant have or had, by what they are keys of; rows are only ever added. */
export const entityKeys = pgTable(
  "entity_keys",
  {
    tenantId: tenantId(),
    source: text("source").notNull().$type<"dimension" | "metadata" | "customProperty">(),
    key: text("key").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.source, table.key] })],
);
