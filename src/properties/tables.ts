import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { bigint, boolean, integer, pgTable, primaryKey, unique } from "drizzle-orm/pg-core";
import { bigintMs, jsonb, tenantId, text } from "../db/columns.ts";

/** One row an updater of custom properties. */
export const propertyUpdaters = pgTable(
  "property_updaters",
  {
    tenantId: tenantId(),
    id: text("id").notNull(),
    name: text("name").notNull(),
    description: text("description").notNull(),
    /** The query, in the JSON form of the API. */
    entityInput: jsonb("entity_input").notNull().$type<JsonValue>(),
    properties: jsonb("properties").notNull().$type<JsonObject>(),
    enabled: boolean("enabled").notNull(),
    sequence: integer("sequence").notNull(),
    tags: jsonb("tags").notNull().$type<string[]>(),
    createdMs: bigintMs("created_ms").notNull(),
    updatedMs: bigintMs("updated_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    unique("property_updaters_name").on(table.tenantId, table.name),
  ],
);

/** One row a tenant that has updaters or models: its lock orders changes of updaters against each other and against models. */
export const propertyUpdaterSets = pgTable(
  "property_updater_sets",
  {
    tenantId: tenantId(),
    /** Rises with each change of an updater. */
    version: bigint("version", { mode: "bigint" }).notNull(),
    /** False only when no updater is enabled. */
    enabled: boolean("enabled").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId] })],
);
