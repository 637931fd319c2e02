import { sql } from "drizzle-orm";
import { bigint, integer, pgTable, primaryKey, smallint, uniqueIndex } from "drizzle-orm/pg-core";
import { bigintMs, bytea, jsonb, tenantId, text } from "../db/columns.ts";

/** One row a series: a metric of an entity, with a set of labels. The entity's row is made with it or before it, and stays as long as it does. */
export const series = pgTable(
  "series",
  {
    tenantId: tenantId(),
    /** From 1, in the order of their making; one that is removed leaves its number unused. */
    number: bigint("number", { mode: "bigint" }).notNull(),
    entityId: bytea("entity_id").notNull(),
    metric: text("metric").notNull(),
    /** Null: none. */
    labels: jsonb("labels").$type<Record<string, string>>(),
    /** What orders series of a metric (`labelsOrder`); empty without labels, as the version before leaves it. */
    labelsBegin: text("labels_begin").notNull().default(""),
    labelsHash: bytea("labels_hash").notNull().default(sql`'\\x'`),
    /** What the points' metadata say; empty: nothing. */
    units: text("units").notNull(),
    description: text("description").notNull(),
    /** The type and temporality that senders name (`notes.ts`); empty: none, as the version before leaves it. */
    instrument: text("instrument").notNull().default(""),
    createdMs: bigintMs("created_ms").notNull(),
    /** Since when it has been known to have no points. A look-up by the receiver clears it. */
    unusedMs: bigintMs("unused_ms"),
  },
  (table) => [
    primaryKey({ columns: [table.tenantId, table.number] }),
    uniqueIndex("series_identity").on(
      table.tenantId,
      table.entityId,
      table.metric,
      table.labelsBegin,
      table.labelsHash,
    ),
  ],
);

/** One row a label of a series: what finds the series of an entity by a label. It goes with its series. */
export const seriesLabels = pgTable(
  "series_labels",
  {
    tenantId: tenantId(),
    entityId: bytea("entity_id").notNull(),
    key: text("key").notNull(),
    /** The first 255 characters of its value. */
    valueBegin: text("value_begin").notNull(),
    series: bigint("series", { mode: "bigint" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.entityId, table.key, table.valueBegin, table.series] })],
);

/** How many series a tenant has, and the last number that one got. Its lock orders the making of series. */
export const seriesCounts = pgTable(
  "series_counts",
  {
    tenantId: tenantId(),
    lastNumber: bigint("last_number", { mode: "bigint" }).notNull(),
    count: bigint("count", { mode: "bigint" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId] })],
);

/** What remote write 1.0 says of metrics, in requests of their own that any process may get; whoever makes a series asks here. */
export const metricFacts = pgTable(
  "metric_facts",
  {
    tenantId: tenantId(),
    /** The metric, or the family of its name. */
    metric: text("metric").notNull(),
    units: text("units").notNull(),
    description: text("description").notNull(),
    instrument: text("instrument").notNull(),
    /** When it was said, to a quarter of an hour. */
    saidMs: bigintMs("said_ms").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.metric] })],
);

/** Points as they came, a few rows a commit, until they are merged into chunks (docs/formats/head-block.md). */
export const metricHeads = pgTable(
  "metric_heads",
  {
    tenantId: tenantId(),
    /** What the numbers of the series leave when divided by 16. */
    bucket: smallint("bucket").notNull(),
    /** The database's time when the points were written, µs: their order. */
    writtenUs: bigint("written_us", { mode: "bigint" }).notNull(),
    /** Any number, to distinguish rows of one moment. */
    part: integer("part").notNull(),
    /** 0: written by a commit; above: made of rows of the level below. */
    level: smallint("level").notNull(),
    firstSeries: bigint("first_series", { mode: "bigint" }).notNull(),
    lastSeries: bigint("last_series", { mode: "bigint" }).notNull(),
    firstMs: bigintMs("first_ms").notNull(),
    lastMs: bigintMs("last_ms").notNull(),
    points: integer("points").notNull(),
    block: bytea("block").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.bucket, table.writtenUs, table.part] })],
);

/**
 * One row a chunk: points of one series within one day of UTC (docs/formats/chunk.md). Chunks of a series do not overlap.
 * Partitions of 30 days, which `src/db/partitions.ts` makes and drops.
 */
export const metricChunks = pgTable(
  "metric_chunks",
  {
    tenantId: tenantId(),
    series: bigint("series", { mode: "bigint" }).notNull(),
    firstMs: bigintMs("first_ms").notNull(),
    lastMs: bigintMs("last_ms").notNull(),
    points: integer("points").notNull(),
    chunk: bytea("chunk").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.series, table.firstMs] })],
);
