import { sql } from "drizzle-orm";
import { boolean, foreignKey, index, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { bigintMs, bytea, tenantId, text } from "../../../db/columns.ts";
import { triggers } from "../../rules/tables.ts";

/** One row a trigger of data that stay away and an entity that it watches; it goes with the trigger. */
export const staleWatches = pgTable(
  "stale_watches",
  {
    tenantId: tenantId(),
    triggerName: text("trigger_name").notNull(),
    entityId: bytea("entity_id").notNull(),
    /** When data came last, or since when they are awaited, on the servers' clock; time without any server is added. */
    lastMs: bigintMs("last_ms").notNull(),
    /** Whether they stay away. */
    fired: boolean("fired").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.triggerName, table.entityId] }),
    foreignKey({
      name: "stale_watches_trigger_fk",
      columns: [table.tenantId, table.triggerName],
      foreignColumns: [triggers.tenantId, triggers.name],
    }).onDelete("cascade"),
    index("stale_watches_fired").on(table.tenantId, table.triggerName, table.entityId).where(sql`fired`),
  ],
);
