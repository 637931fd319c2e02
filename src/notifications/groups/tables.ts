import { boolean, index, integer, pgTable, primaryKey, uuid } from "drizzle-orm/pg-core";
import { bigintMs, bytea, jsonb, jsonColumn, tenantId, texts } from "../../db/columns.ts";
import type { Grouping } from "../rules/grouping.ts";

/** One row a rule that has groups: who works on them holds it. */
export const groupedRules = pgTable(
  "grouped_rules",
  {
    tenantId: tenantId(),
    ruleId: uuid("rule_id").notNull(),
    /** By which its open groups were made. */
    grouping: jsonb("grouping").notNull().$type<Grouping>(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.ruleId] })],
);

/** One row a group that is open, or waits to be sent first. */
export const alertGroups = pgTable(
  "alert_groups",
  {
    tenantId: tenantId(),
    ruleId: uuid("rule_id").notNull(),
    /** The subject of its deliveries. */
    groupKey: bytea("group_key").notNull(),
    /** What its members share; `{}` of the group of those beyond the bound, too. */
    labels: jsonColumn("labels").notNull().$type<Record<string, string>>(),
    /** The last flush; null: there was none. */
    flushedMs: bigintMs("flushed_ms"),
    /** The next flush; null: nothing would follow from one. */
    dueMs: bigintMs("due_ms"),
    /** When it is repeated; null: it is not. */
    repeatMs: bigintMs("repeat_ms"),
    /** created_ms of its first message since it opened; null: there was none. */
    openedMs: bigintMs("opened_ms"),
    /** created_ms of its newest message: those of one group strictly grow. */
    lastMs: bigintMs("last_ms").notNull(),
    /** The destinations that were sent a message and no end. */
    openAt: texts("open_at").notNull(),
    /** Whether something holds a member back. */
    held: boolean("held").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.ruleId, table.groupKey] })],
);

/** One row a member of a group, until a flush has seen its end. */
export const groupMembers = pgTable(
  "group_members",
  {
    tenantId: tenantId(),
    ruleId: uuid("rule_id").notNull(),
    groupKey: bytea("group_key").notNull(),
    /** The id of its event, or the subject of what is no occurrence. */
    member: bytea("member").notNull(),
    /** As in rule_matches. */
    subject: bytea("subject").notNull(),
    /** When it joins: at the end of its delay. */
    joinsMs: bigintMs("joins_ms").notNull(),
    /** The destinations that were sent a message in which it fires. */
    sentTo: texts("sent_to").notNull(),
    /** Those of them that were since sent that all others had ended while something held it back: it is sent there as firing once more. */
    againAt: texts("again_at").notNull().default([]),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.ruleId, table.groupKey, table.member] }),
    index("group_members_by_member").on(table.tenantId, table.ruleId, table.member),
  ],
);

/** One row a message of a group: what its deliveries say, as it was decided. */
export const groupMessages = pgTable(
  "group_messages",
  {
    tenantId: tenantId(),
    /** UUID version 7 of its time. */
    id: uuid("id").notNull(),
    /** `group-snapshot.ts`. */
    told: jsonColumn("told").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.id] })],
);

/** One row a member of a message. */
export const groupMessageMembers = pgTable(
  "group_message_members",
  {
    tenantId: tenantId(),
    messageId: uuid("message_id").notNull(),
    /** From 0, in the order of the message. */
    place: integer("place").notNull(),
    /** As in rule_matches. */
    subject: bytea("subject").notNull(),
    eventId: bytea("event_id"),
    number: integer("number"),
    entityId: bytea("entity_id").notNull(),
    resolved: boolean("resolved").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.messageId, table.place] }),
    index("group_message_members_by_subject").on(table.tenantId, table.subject),
    index("group_message_members_by_entity").on(table.tenantId, table.entityId),
  ],
);
