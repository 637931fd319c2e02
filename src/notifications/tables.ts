import type { JsonValue } from "@bufbuild/protobuf";
import { bigint, boolean, foreignKey, index, integer, pgTable, primaryKey } from "drizzle-orm/pg-core";
import { bigintMs, jsonb, tenantId, text } from "../db/columns.ts";

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
    description: text("description").notNull(),
    enabled: boolean("enabled").notNull(),
    /** A template. */
    message: text("message").notNull(),
    repeat: boolean("repeat").notNull(),
    repeatIntervalSec: bigint("repeat_interval_sec", { mode: "bigint" }).notNull(),
    delaySec: integer("delay_sec").notNull(),
    sendUpdates: boolean("send_updates").notNull(),
    muteDuringMaintenance: boolean("mute_during_maintenance").notNull(),
    tags: jsonb("tags").notNull().$type<string[]>(),
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
