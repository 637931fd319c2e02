import { index, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { bigintMs, bytea, jsonb, tenantId, text } from "../db/columns.ts";

/**
 * One row an entity, made by its first model, point or event. A deleted entity keeps its row, so that its series and
 * events stay readable and a late point does not bring it back.
 */
export const entities = pgTable(
  "entities",
  {
    tenantId: tenantId(),
    id: bytea("id").notNull(),
    name: text("name").notNull(),
    dimensions: jsonb("dimensions").notNull().$type<Record<string, string>>(),
    metadata: jsonb("metadata").notNull().$type<Record<string, unknown>>(),
    /** Set by users and updaters, not by models: strings, numbers, booleans and lists of them. */
    customProperties: jsonb("custom_properties").notNull().default({}).$type<Record<string, unknown>>(),
    /** Timestamp of the model that described it last; null while only points and events are known. */
    modelMs: bigintMs("model_ms"),
    createdMs: bigintMs("created_ms").notNull(),
    updatedMs: bigintMs("updated_ms").notNull(),
    /** Latest data of any kind, to the minute. */
    livenessMs: bigintMs("liveness_ms").notNull(),
    /** Timestamp of the model that deleted it. */
    deletedMs: bigintMs("deleted_ms"),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    index("entities_name").on(table.tenantId, table.name, table.id),
    index("entities_dimensions").using("gin", table.tenantId, table.dimensions.op("jsonb_path_ops")),
  ],
);
