import { bigint, integer, pgTable, primaryKey, uuid } from "drizzle-orm/pg-core";
import { bigintMs, tenantId, text } from "../../../db/columns.ts";

/**
 * One row a portion of changes of occurrences that are stored and still to be matched with rules; it goes when they are. No
 * column that progress writes is indexed.
 */
export const unmatchedChanges = pgTable(
  "unmatched_changes",
  {
    tenantId: tenantId(),
    /** Grows with the changes of each event; portions of different events may share one. */
    position: bigint("position", { mode: "bigint" }).notNull(),
    id: uuid("id").notNull(),
    /** When they were stored. */
    createdMs: bigintMs("created_ms").notNull(),
    count: integer("count").notNull(),
    /** How many of them have been matched. */
    done: integer("done").notNull(),
    /** Of `changes`. */
    bytes: integer("bytes").notNull(),
    /** What rules see of them (snapshot.ts), JSON. */
    changes: text("changes").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.position, table.id] })],
);
