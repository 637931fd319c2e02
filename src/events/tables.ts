import { bigint, boolean, foreignKey, index, integer, pgTable, primaryKey, smallint } from "drizzle-orm/pg-core";
import { bigintMs, bytea, jsonb, tenantId, text } from "../db/columns.ts";
import { entities } from "../entities/tables.ts";

/** One row an event: a name on an entity. Its lock orders everything that happens to its occurrences. */
export const events = pgTable(
  "events",
  {
    tenantId: tenantId(),
    id: bytea("id").notNull(),
    entityId: bytea("entity_id").notNull(),
    name: text("name").notNull(),
    /** Number of the latest occurrence; 0 before the first. */
    lastNumber: integer("last_number").notNull(),
    /** Time of the latest instance; older ones are late. */
    lastSeenMs: bigintMs("last_seen_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    foreignKey({ columns: [table.tenantId, table.entityId], foreignColumns: [entities.tenantId, entities.id] }),
    index("events_entity").on(table.tenantId, table.entityId),
    index("events_name").on(table.tenantId, table.name, table.id),
  ],
);

/** One row an occurrence: an event from its first sight to its closing. */
export const occurrences = pgTable(
  "occurrences",
  {
    tenantId: tenantId(),
    eventId: bytea("event_id").notNull(),
    number: integer("number").notNull(),
    severity: smallint("severity").notNull(),
    status: smallint("status").notNull(),
    acknowledged: boolean("acknowledged").notNull(),
    type: text("type").notNull(),
    summary: text("summary").notNull(),
    body: text("body").notNull(),
    metadata: jsonb("metadata").notNull().$type<Record<string, unknown>>(),
    startMs: bigintMs("start_ms").notNull(),
    lastSeenMs: bigintMs("last_seen_ms").notNull(),
    endMs: bigintMs("end_ms"),
    instanceCount: bigint("instance_count", { mode: "bigint" }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.eventId, table.number] }),
    foreignKey({ columns: [table.tenantId, table.eventId], foreignColumns: [events.tenantId, events.id] }),
    index("occurrences_last_seen").on(table.tenantId, table.lastSeenMs, table.eventId, table.number),
  ],
);

/** One row an instance, as it was sent: the same one again is a retry. */
export const instances = pgTable(
  "instances",
  {
    tenantId: tenantId(),
    eventId: bytea("event_id").notNull(),
    timeMs: bigintMs("time_ms").notNull(),
    severity: smallint("severity").notNull(),
    status: smallint("status").notNull(),
    /** The occurrence that it counts in. */
    number: integer("number").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.eventId, table.timeMs, table.severity, table.status] })],
);
