import { sql } from "drizzle-orm";
import { bigint, index, integer, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { bigintMs, jsonb, tenantId, text } from "../db/columns.ts";

/**
 * One row a job that is still to be done; it goes when the job is done. No column that a claim writes is indexed, so that
 * a claim stays within its page.
 */
export const jobs = pgTable(
  "jobs",
  {
    tenantId: tenantId(),
    kind: text("kind").notNull(),
    id: text("id").notNull(),
    payload: jsonb("payload").notNull(),
    /** How much work it is, in the unit of its kind. */
    size: integer("size").notNull(),
    dueMs: bigintMs("due_ms").notNull(),
    createdMs: bigintMs("created_ms").notNull(),
    /** Raised by each claim and each replacement: what an earlier holder of the job does afterwards has no effect. */
    fence: bigint("fence", { mode: "bigint" }).notNull(),
    /** No other process may claim it before. */
    leaseUntilMs: bigintMs("lease_until_ms").notNull(),
    /** Failures in a row. */
    failures: integer("failures").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.kind, table.id] }),
    // Partial: a look-up by key does not name `size >= 0`, so the planner has no index for it but the key's (design/statements).
    index("jobs_by_due").on(table.tenantId, table.kind, table.dueMs, table.id).where(sql`size >= 0`),
  ],
);

/** Which tenants have work of which kind, and when the first of it is due, or earlier: the one table that is read for all tenants. */
export const dueWork = pgTable(
  "due_work",
  {
    tenantId: tenantId(),
    kind: text("kind").notNull(),
    dueMs: bigintMs("due_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.kind] }),
    // Partial, as jobs_by_due.
    index("due_work_by_due").on(table.kind, table.dueMs, table.tenantId).where(sql`due_ms >= 0`),
  ],
);

/** Which server leads in what, until when. A row belongs to no tenant. */
export const leases = pgTable("leases", {
  name: text("name").primaryKey(),
  holder: text("holder").notNull(),
  untilMs: bigintMs("until_ms").notNull(),
});
