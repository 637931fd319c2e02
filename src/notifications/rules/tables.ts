import type { JsonValue } from "@bufbuild/protobuf";
import { sql } from "drizzle-orm";

import {
  bigint,
  boolean,
  doublePrecision,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  uuid,
} from "drizzle-orm/pg-core";
import type { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { bigintMs, bytea, jsonb, tenantId, text, texts } from "../../db/columns.ts";
import type { Grouping } from "./grouping.ts";

/** One row a trigger: the condition that rules wait for. */
export const triggers = pgTable(
  "triggers",
  {
    tenantId: tenantId(),
    name: text("name").notNull(),
    description: text("description").notNull(),
    tags: jsonb("tags").notNull().$type<string[]>(),
    /** What it looks at: event, metricThreshold or staleData. */
    source: text("source").notNull(),
    /** The message TriggerType, in the JSON form of the API. */
    type: jsonb("type").notNull().$type<JsonValue>(),
    /** How many texts it compares each event with, beside what an index decides; null until that was counted. */
    comparisons: integer("comparisons"),
    createdMs: bigintMs("created_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.name] })],
);

/** One row a destination: where notifications go. */
export const destinations = pgTable(
  "destinations",
  {
    tenantId: tenantId(),
    name: text("name").notNull(),
    description: text("description").notNull(),
    tags: jsonb("tags").notNull().$type<string[]>(),
    /** The name of its kind, as the API spells it: email, teamChat … */
    kind: text("kind").notNull(),
    /** The message DestinationType, in the JSON form of the API; `********` in place of each secret. */
    type: jsonb("type").notNull().$type<JsonValue>(),
    /** By the path within the type: sealed by the tenant's data key, base64. */
    secrets: jsonb("secrets").notNull().$type<Record<string, string>>(),
    /** 0: none. */
    maxPerMinute: integer("max_per_minute").notNull(),
    /** Why the service disabled it; empty when it did not. */
    disabledReason: text("disabled_reason").notNull(),
    createdMs: bigintMs("created_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.name] })],
);

/** One row a rule: which triggers lead to which destinations. */
export const rules = pgTable(
  "rules",
  {
    tenantId: tenantId(),
    name: text("name").notNull(),
    /** Another one when a rule is deleted and one of its name created: what was noted of the old one is not the new one's. */
    id: uuid("id").notNull().defaultRandom(),
    description: text("description").notNull(),
    enabled: boolean("enabled").notNull(),
    /** A template. */
    message: text("message").notNull(),
    repeat: boolean("repeat").notNull(),
    /** A number of RepeatWhile; null in rows of 0.1.0: by reports. */
    repeatWhile: smallint("repeat_while").$type<RepeatWhile>(),
    repeatIntervalSec: bigint("repeat_interval_sec", { mode: "bigint" }).notNull(),
    delaySec: integer("delay_sec").notNull(),
    sendUpdates: boolean("send_updates").notNull(),
    muteDuringMaintenance: boolean("mute_during_maintenance").notNull(),
    tags: jsonb("tags").notNull().$type<string[]>(),
    /** A condition of its own, as it was sent. Empty: it has none. */
    matchers: texts("matchers").notNull().default([]),
    /** Null: each match is notified by itself. */
    grouping: jsonb("grouping").$type<Grouping>(),
    createdMs: bigintMs("created_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.name] })],
);

/** One row a trigger of a rule. The foreign key keeps a trigger in use from going. */
export const ruleTriggers = pgTable(
  "rule_triggers",
  {
    tenantId: tenantId(),
    ruleName: text("rule_name").notNull(),
    triggerName: text("trigger_name").notNull(),
    /** From 0, in the order in which the rule names its triggers. */
    place: integer("place").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.ruleName, table.triggerName] }),
    foreignKey({
      name: "rule_triggers_rule_fk",
      columns: [table.tenantId, table.ruleName],
      foreignColumns: [rules.tenantId, rules.name],
    }).onDelete("cascade"),
    foreignKey({
      name: "rule_triggers_trigger_fk",
      columns: [table.tenantId, table.triggerName],
      foreignColumns: [triggers.tenantId, triggers.name],
    }),
    index("rule_triggers_trigger").on(table.tenantId, table.triggerName, table.ruleName),
  ],
);

/** One row a destination of a rule. The foreign key keeps a destination in use from going. */
export const ruleDestinations = pgTable(
  "rule_destinations",
  {
    tenantId: tenantId(),
    ruleName: text("rule_name").notNull(),
    destinationName: text("destination_name").notNull(),
    /** From 0, in the order in which the rule names its destinations. */
    place: integer("place").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.ruleName, table.destinationName] }),
    foreignKey({
      name: "rule_destinations_rule_fk",
      columns: [table.tenantId, table.ruleName],
      foreignColumns: [rules.tenantId, rules.name],
    }).onDelete("cascade"),
    foreignKey({
      name: "rule_destinations_destination_fk",
      columns: [table.tenantId, table.destinationName],
      foreignColumns: [destinations.tenantId, destinations.name],
    }),
    index("rule_destinations_destination").on(table.tenantId, table.destinationName, table.ruleName),
  ],
);

/**
 * One row a rule and a subject that it has matched: what the next notification is decided by. The subject is an occurrence
 * (its event's id and its number, 24 bytes), or what `subjects.ts` makes of a series or an entity. A row of the nil rule
 * carries the chain of an occurrence that rules have made.
 */
export const ruleMatches = pgTable(
  "rule_matches",
  {
    tenantId: tenantId(),
    subject: bytea("subject").notNull(),
    ruleId: uuid("rule_id").notNull(),
    entityId: bytea("entity_id").notNull(),
    /** Of an occurrence; null for other sources. */
    eventId: bytea("event_id"),
    number: integer("number"),
    /** Of a series; null for other sources. */
    metricName: text("metric_name"),
    /** Of a series that has some. */
    metricLabels: jsonb("metric_labels").$type<Record<string, string>>(),
    /** Those that match, in the rule's order. */
    triggerNames: texts("trigger_names").notNull(),
    /** Whether it matches now. */
    standing: boolean("standing").notNull(),
    /** Whether something is held back because the entity is in maintenance. */
    muted: boolean("muted").notNull(),
    /** The names of the rules that made the occurrence, the latest last. */
    chain: texts("chain").notNull(),
    /** What was reported last of an occurrence. */
    severity: smallint("severity"),
    status: smallint("status"),
    acknowledged: boolean("acknowledged"),
    /** The newest point that decided anything. */
    value: doublePrecision("value"),
    valueMs: bigintMs("value_ms"),
    /** When the match that stands, or that stood last, began: earlier deliveries belong to earlier matches. */
    matchedMs: bigintMs("matched_ms").notNull(),
    /** When the delay of its first notification ends; null when none waits for a look at its end. */
    firstDueMs: bigintMs("first_due_ms"),
    /** When a first or repeated notification was last due; null when there was none. */
    notifiedMs: bigintMs("notified_ms"),
    /** created_ms of its newest delivery: those of one row strictly grow. */
    lastMs: bigintMs("last_ms").notNull(),
    /** Whether it is notified as a member of a group. */
    grouped: boolean("grouped").notNull().default(false),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.subject, table.ruleId] }),
    index("rule_matches_muted").on(table.tenantId, table.entityId).where(sql`muted`),
  ],
);

/**
 * Of what set off rules that make events: how many events it has led to (the row of the nil rule), and how many more a rule
 * would have made. Roots sort by time.
 */
export const chainCounts = pgTable(
  "chain_counts",
  {
    tenantId: tenantId(),
    root: uuid("root").notNull(),
    ruleId: uuid("rule_id").notNull(),
    count: integer("count").notNull(),
    /** The delivery that says how many more there were, and when it was decided; null in the row of the nil rule. */
    deliveryId: uuid("delivery_id"),
    deliveryMs: bigintMs("delivery_ms"),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.root, table.ruleId] })],
);

/** One row a portion of changes that a server of 0.2 has stored and left to be matched. Only 0.3 reads it: it goes when none can run any more. */
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
    /** In the form of src/events/facts.ts. */
    changes: text("changes").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.position, table.id] })],
);
