import { boolean, index, integer, pgTable, primaryKey, uuid } from "drizzle-orm/pg-core";
import type { MatcherParts } from "../../clause/label-matcher.ts";
import { bigintMs, bytea, jsonb, tenantId, text, texts } from "../../db/columns.ts";

/** One row a silence. It stays after its end for as long as deliveries are kept. */
export const silences = pgTable(
  "silences",
  {
    tenantId: tenantId(),
    id: uuid("id").notNull(),
    /** As they were sent. */
    matchers: texts("matchers").notNull(),
    /** The same, read: rules need no parser. */
    parts: jsonb("parts").notNull().$type<MatcherParts[]>(),
    /** The same as `matcherText` writes them: what is equal is equal here. */
    canonical: texts("canonical").notNull(),
    startsMs: bigintMs("starts_ms").notNull(),
    /** Null: it ends when what it matched has. */
    endsMs: bigintMs("ends_ms"),
    untilResolved: boolean("until_resolved").notNull(),
    /** Whether what it matched when it began is in silence_subjects. */
    judged: boolean("judged").notNull(),
    /** Empty: all. */
    ruleNames: texts("rule_names").notNull(),
    destinationNames: texts("destination_names").notNull(),
    comment: text("comment").notNull(),
    createdBy: text("created_by").notNull(),
    /** Whose key made it, or changed it last. */
    clientId: text("client_id").notNull(),
    clientName: text("client_name").notNull(),
    keyPrefix: text("key_prefix").notNull(),
    createdMs: bigintMs("created_ms").notNull(),
    updatedMs: bigintMs("updated_ms").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    index("silences_by_age").on(table.tenantId, table.createdMs, table.id),
    index("silences_by_end").on(table.tenantId, table.endsMs),
  ],
);

/** One row a thing that a silence waits for, which ends when nothing of it is open any more. */
export const silenceSubjects = pgTable(
  "silence_subjects",
  {
    tenantId: tenantId(),
    silenceId: uuid("silence_id").notNull(),
    /** As in rule_matches. */
    subject: bytea("subject").notNull(),
    /** Of an occurrence; null for what is none, which rules match. */
    eventId: bytea("event_id"),
    number: integer("number"),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.silenceId, table.subject] })],
);
