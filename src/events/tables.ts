import { sql } from "drizzle-orm";
import { bigint, boolean, foreignKey, index, integer, pgTable, primaryKey, smallint } from "drizzle-orm/pg-core";
import type { ClosedBy } from "#gen/belfry/events/v1/event_pb.ts";
import { bigintMs, bytea, jsonb, jsonColumn, tenantId, text } from "../db/columns.ts";
import { entities } from "../entities/tables.ts";

/**
 * One row an event: a name and a key on an entity, and the lock under which everything happens to its occurrences
 * (src/events/lock.ts). Never updated; a number is never given twice while the newest occurrence stays as long as its event.
 */
export const events = pgTable(
  "events",
  {
    tenantId: tenantId(),
    id: bytea("id").notNull(),
    entityId: bytea("entity_id").notNull(),
    name: text("name").notNull(),
    /** What distinguishes it from others of its name on its entity; null: nothing. */
    dedupKey: text("dedup_key"),
    /** The labels of the alert that it is, as they were sent; null: it is none, or its metadata hold them whole. */
    alertLabels: jsonColumn("alert_labels").$type<Record<string, string>>(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.id] }),
    foreignKey({ columns: [table.tenantId, table.entityId], foreignColumns: [entities.tenantId, entities.id] }),
    index("events_entity").on(table.tenantId, table.entityId),
    index("events_name").on(table.tenantId, table.name, table.id),
    // Labels that the metadata of occurrences do not hold whole.
    index("events_labels")
      .using("gin", table.tenantId, sql`(alert_labels::jsonb) jsonb_path_ops`)
      .where(sql`alert_labels is not null`),
    index("events_key").on(table.tenantId, table.dedupKey, table.id).where(sql`dedup_key is not null`),
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
    /** While it is open: when it expires; null: never. Once it is closed: when it had, null where something else closed it. */
    expiresMs: bigintMs("expires_ms"),
    /** The time of the latest report that only kept it open, where it is later than `last_seen_ms`; null: none was. */
    keptOpenMs: bigintMs("kept_open_ms"),
    /** Null: it is not closed, or a process of 0.3 closed it. */
    closedBy: smallint("closed_by").$type<ClosedBy>(),
    /**
     * The five minutes in which it was last seen: the index over it replaces one over last_seen_ms, so that most repeats
     * change no indexed column. A search by time asks for both.
     */
    seenSlot: bigint("seen_slot", { mode: "bigint" }).generatedAlwaysAs(sql`last_seen_ms / 300000`),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.eventId, table.number] }),
    foreignKey({ columns: [table.tenantId, table.eventId], foreignColumns: [events.tenantId, events.id] }),
    index("occurrences_seen").on(table.tenantId, table.seenSlot),
    // What is open, what overlaps a time, and what may be deleted. An end seldom changes.
    index("occurrences_end").on(table.tenantId, table.endMs),
    // What is open and ages, by severity. By a condition that only ageing names: no look-up by key takes it (design/statements).
    index("occurrences_open")
      .on(table.tenantId, table.severity, table.seenSlot)
      .where(sql`end_ms is null and number >= 0`),
    // Types and metadata. A report that changes them updates all indexes of the row.
    index("occurrences_terms")
      .using("gin", table.tenantId, table.type, table.metadata.op("jsonb_path_ops"))
      .with({ gin_pending_list_limit: 128 }),
    // What expires next.
    index("occurrences_expiry")
      .on(table.tenantId, table.expiresMs, table.eventId)
      .where(sql`end_ms is null and expires_ms is not null`),
    // The occurrence that had begun at a time.
    index("occurrences_start").on(table.tenantId, table.eventId, table.startMs, table.number),
  ],
);

/** One row an instance, as it was sent: the same one again is a retry. By time, so that what comes is appended. */
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
  (table) => [primaryKey({ columns: [table.tenantId, table.timeMs, table.eventId, table.severity, table.status] })],
);

/** One row a note on an occurrence. */
export const annotations = pgTable(
  "annotations",
  {
    tenantId: tenantId(),
    eventId: bytea("event_id").notNull(),
    number: integer("number").notNull(),
    id: text("id").notNull(),
    text: text("text").notNull(),
    /** Name of the API client that wrote it. */
    createdBy: text("created_by").notNull(),
    createdMs: bigintMs("created_ms").notNull(),
    updatedMs: bigintMs("updated_ms").notNull(),
    /** Its place among those of one call, which have one time. */
    place: bigint("place", { mode: "bigint" }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.eventId, table.number, table.id] }),
    foreignKey({
      columns: [table.tenantId, table.eventId, table.number],
      foreignColumns: [occurrences.tenantId, occurrences.eventId, occurrences.number],
    }),
  ],
);

/**
 * One row a transaction that changed occurrences of the tenant: what it changed, in the form of docs/formats/feed.md.
 * Positions run from 1, without a gap, in the order of the commits.
 */
export const feed = pgTable(
  "feed",
  {
    tenantId: tenantId(),
    position: bigint("position", { mode: "bigint" }).notNull(),
    createdMs: bigintMs("created_ms").notNull(),
    changes: bytea("changes").notNull(),
    /** What the changes replaced; null: nothing, or written by a server that did not keep it. */
    earlier: bytea("earlier"),
    /** What consumers look at of each report and change (src/events/facts.ts); null: no consumer had a cursor. */
    facts: text("facts"),
    factCount: integer("fact_count"),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.position] })],
);

/** One row a consumer that reads the feed of a tenant: its lock, and up to where the feed has had its effects. */
export const feedCursors = pgTable(
  "feed_cursors",
  {
    tenantId: tenantId(),
    name: text("name").notNull(),
    /** The last row of the feed of which all facts are consumed. */
    position: bigint("position", { mode: "bigint" }).notNull(),
    /** How many facts of the next row are consumed. */
    done: integer("done").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.name] })],
);

/** One row a view of events that people of a tenant share. */
export const eventViews = pgTable(
  "event_views",
  {
    tenantId: tenantId(),
    name: text("name").notNull(),
    /** Which events it shows, and how: texts of the program that shows it. */
    query: text("query").notNull(),
    display: text("display").notNull(),
    /** Whose key made it. */
    createdBy: text("created_by").notNull(),
    createdMs: bigintMs("created_ms").notNull(),
    updatedMs: bigintMs("updated_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.name] })],
);
