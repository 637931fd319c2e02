import { sql } from "drizzle-orm";
import { bigint, boolean, foreignKey, index, integer, pgTable, primaryKey, uuid } from "drizzle-orm/pg-core";
import { bigintMs, bytea, jsonb, tenantId, text, texts } from "../../db/columns.ts";
import { destinations } from "../rules/tables.ts";

/** What a delivery is about and what it reports, the same while it waits and afterwards. */
const deliveryFacts = {
  tenantId: tenantId(),
  /** UUID version 7 of createdMs: what is known by its id is found in the partition of its day. */
  id: uuid("id").notNull(),
  createdMs: bigintMs("created_ms").notNull(),
  ruleId: uuid("rule_id").notNull(),
  ruleName: text("rule_name").notNull(),
  /** Those that matched, in the rule's order: the first is named. */
  triggerNames: texts("trigger_names").notNull(),
  destinationName: text("destination_name").notNull(),
  /** As in rule_matches. */
  subject: bytea("subject").notNull(),
  eventId: bytea("event_id"),
  number: integer("number"),
  entityId: bytea("entity_id"),
  metricName: text("metric_name"),
  /** Why it is sent, as `notification.ts` names it. */
  occasion: text("occasion").notNull(),
  /** What was so when it was decided: `delivery-snapshot.ts`. */
  told: jsonb("told").notNull(),
  /** One entry a try: when, and what came of it. */
  attempts: jsonb("attempts").notNull(),
  /** What failed last; empty when nothing did. */
  error: text("error").notNull(),
};

/** One row a delivery that is still to be made. It goes to delivery_history when it is done. */
export const dueDeliveries = pgTable(
  "due_deliveries",
  {
    ...deliveryFacts,
    dueMs: bigintMs("due_ms").notNull(),
    /** No other process may claim it before. */
    leaseUntilMs: bigintMs("lease_until_ms").notNull(),
    /** Raised by each claim: what an earlier holder records afterwards has no effect. */
    fence: bigint("fence", { mode: "bigint" }).notNull(),
    tries: integer("tries").notNull(),
    /** Those of the tries that were answered with what is tried again slowly. */
    slowTries: integer("slow_tries").notNull(),
    /** When it was asked for again; null when it never was. */
    retriedMs: bigintMs("retried_ms"),
    /** The silence that holds it until it is due; null when none does. */
    silenceId: uuid("silence_id"),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    // Both are partial: a statement uses the one whose condition it names, and a look-up by key neither (design/statements).
    // The oldest of a destination and a subject goes first. Of columns that never change.
    index("due_deliveries_by_age")
      .on(table.tenantId, table.destinationName, table.subject, table.createdMs, table.id)
      .where(sql`created_ms >= 0`),
    // What is due at a destination, the first due first. Only a retry changes its place.
    index("due_deliveries_by_due")
      .on(table.tenantId, table.destinationName, table.dueMs, table.id)
      .where(sql`tries >= 0`),
  ],
);

/** One row a delivery that is done. Partitions of a day of created_ms, which `src/db/partitions.ts` makes and drops. */
export const deliveryHistory = pgTable(
  "delivery_history",
  {
    ...deliveryFacts,
    /** SENT, FAILED, CANCELLED or SUMMARISED. */
    status: text("status").notNull(),
    endedMs: bigintMs("ended_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.createdMs, table.id] })],
);

/** One row a destination that was sent to: what all servers must know of it. It goes with the destination. */
export const destinationStates = pgTable(
  "destination_states",
  {
    tenantId: tenantId(),
    destinationName: text("destination_name").notNull(),
    /** Temporary failures in a row. */
    failures: integer("failures").notNull(),
    /** How often in a row its breaker has opened; 0: it is closed. */
    opened: integer("opened").notNull(),
    openUntilMs: bigintMs("open_until_ms").notNull(),
    /** The try that is to show whether it answers again is under way until then. */
    probeUntilMs: bigintMs("probe_until_ms").notNull(),
    /** Before this the next one is too early for the product that it is. */
    allowedMs: bigintMs("allowed_ms").notNull(),
    /** The minute that is counted for its maxPerMinute, and how many went in it. */
    minuteMs: bigintMs("minute_ms").notNull(),
    minuteCount: integer("minute_count").notNull(),
    /** The last minute that was summed up. */
    summaryMs: bigintMs("summary_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.destinationName] }),
    foreignKey({
      name: "destination_states_destination_fk",
      columns: [table.tenantId, table.destinationName],
      foreignColumns: [destinations.tenantId, destinations.name],
    }).onDelete("cascade"),
  ],
);

/** One row a destination and a subject: what its kind keeps from one notification to the next. */
export const deliveryThreads = pgTable(
  "delivery_threads",
  {
    tenantId: tenantId(),
    destinationName: text("destination_name").notNull(),
    subject: bytea("subject").notNull(),
    state: jsonb("state").notNull(),
    /** Whether anything of it ever went out. */
    sent: boolean("sent").notNull(),
    updatedMs: bigintMs("updated_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.destinationName, table.subject] })],
);

/** One row a summary and a delivery that it reports, with the match that is open until it ends. */
export const summaryMembers = pgTable(
  "summary_members",
  {
    tenantId: tenantId(),
    /** The delivery that was sent as the summary, a member itself. */
    summaryId: uuid("summary_id").notNull(),
    deliveryId: uuid("delivery_id").notNull(),
    /** When the delivery was decided. */
    createdMs: bigintMs("created_ms").notNull(),
    destinationName: text("destination_name").notNull(),
    /** As in rule_matches. */
    subject: bytea("subject").notNull(),
    ruleId: uuid("rule_id").notNull(),
    /** Whether it is about a maintenance window: no match stands, and its end alone ends it. */
    ofWindow: boolean("of_window").notNull(),
    /** Whether the end of its match was reported, or would have been. */
    over: boolean("over").notNull(),
    /** Of the summary's own delivery: what it says, and its end after it. Null in all others. */
    told: jsonb("told"),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.summaryId, table.deliveryId] }),
    // Partial, so that a look-up by key does not use it (design/statements).
    index("summary_members_by_subject")
      .on(table.tenantId, table.destinationName, table.subject)
      .where(sql`created_ms >= 0`),
  ],
);

/** One row ten minutes of what was sent for a rule, by a trigger or to a destination, or failed there: the counts of the last 24 hours. */
export const deliveryCounts = pgTable(
  "delivery_counts",
  {
    tenantId: tenantId(),
    /** rule, trigger or destination; failed: what failed to a destination. */
    about: text("about").notNull(),
    name: text("name").notNull(),
    /** When the ten minutes begin. */
    slotMs: bigintMs("slot_ms").notNull(),
    count: integer("count").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.about, table.name, table.slotMs] })],
);
