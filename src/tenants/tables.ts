import { sql } from "drizzle-orm";
import { bigint, index, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { bigintMs, tenantId, text } from "../db/columns.ts";

/** One row a call of a writing RPC, and one an action of the command line. Rows are never changed and never hold a secret. */
export const auditEntries = pgTable(
  "audit_entries",
  {
    tenantId: tenantId(),
    id: text("id").notNull(),
    timeMs: bigintMs("time_ms").notNull(),
    /** Without a foreign key: the row outlives the client, and knows its name at that time. */
    clientId: text("client_id").notNull(),
    clientName: text("client_name").notNull(),
    rpc: text("rpc").notNull(),
    /** The last part of `rpc`, which lists may be filtered by. */
    method: text("method").notNull(),
    resource: text("resource").notNull(),
    /** Name of the gRPC code. */
    outcome: text("outcome").notNull(),
    requestId: text("request_id").notNull(),
    /** The public part of the key that was called with; null for what was no call. */
    keyPrefix: text("key_prefix"),
    /** The console's session that the call came from. */
    sessionId: text("session_id"),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    index("audit_entries_time").on(table.tenantId, table.timeMs, table.id),
    index("audit_entries_client").on(table.tenantId, table.clientId, table.timeMs, table.id),
    index("audit_entries_method").on(table.tenantId, table.method, table.timeMs, table.id),
  ],
);

/**
 * One row a tenant, made when it is first needed. Its lock is the last that a transaction takes which changes occurrences:
 * under it positions of the feed are given.
 */
export const tenantState = pgTable(
  "tenant_state",
  {
    tenantId: tenantId(),
    /** Rises with each change of rules, triggers and destinations, in its transaction. */
    rulesVersion: bigint("rules_version", { mode: "bigint" }).notNull().default(sql`0`),
    /** When the first session of the console was made: from then on no start prints a link that makes one. */
    firstSessionMs: bigintMs("first_session_ms"),
  },
  (table) => [primaryKey({ columns: [table.tenantId] })],
);

/** One row a change of a rule, trigger or destination, by the version that it made: what a server reads again. The latest ones. */
export const ruleChanges = pgTable(
  "rule_changes",
  {
    tenantId: tenantId(),
    version: bigint("version", { mode: "bigint" }).notNull(),
    /** rule, trigger or destination. */
    kind: text("kind").notNull(),
    name: text("name").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.version] })],
);

/**
 * One row a tenant and a kind: how many there are of what data make, written by the transactions that make and remove them
 * (src/tenants/usage-counters.ts), and at most how many of what the tenant sets up (src/db/running-total.ts).
 */
export const tenantCounts = pgTable(
  "tenant_counts",
  {
    tenantId: tenantId(),
    what: text("what").notNull(),
    count: bigint("count", { mode: "bigint" }).notNull(),
    /** Of what the tenant sets up: its size together, and when all of it was summed up. */
    size: bigint("size", { mode: "bigint" }),
    countedMs: bigintMs("counted_ms"),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.what] })],
);
