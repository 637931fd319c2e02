import type { Db, Sql } from "../../src/db/connect.ts";
import { keepPartitions } from "../../src/db/partitions.ts";
import { transaction } from "../../src/db/transaction.ts";
import { unbounded } from "../../src/entities/bounds.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { paced } from "../../src/event-loop.ts";
import { mergeHead } from "../../src/metrics/merge.ts";
import { noNotes } from "../../src/metrics/notes.ts";
import { batchBuilder } from "../../src/metrics/point-batch.ts";
import { readPoints } from "../../src/metrics/read.ts";
import { seriesMemory } from "../../src/metrics/series-memory.ts";
import { type MetricStore, storePoints } from "../../src/metrics/store.ts";

/** A point of a test: the name of its metric, which stands for its series, its time and its value. */
export interface Sent {
  metric: string;
  timeMs: number;
  value: number;
  labels?: Record<string, string>;
}

export const dimensions = { source: "web-1", zone: "b" };

/** What stores points, alone: it knows nothing yet, and tells no one. */
export const testStore = (more: Partial<MetricStore> = {}): MetricStore => ({
  memory: seriesMemory(),
  known: entityCache(),
  seriesMax: 1000,
  bounds: unbounded,
  async onPoints() {},
  onData() {},
  onStored() {},
  ...more,
});

/** Stores points in a transaction of their own, all of one entity; returns the places of those that were refused. */
export async function put(db: Db, store: MetricStore, tenantId: string, sent: readonly Sent[], nowMs = Date.now()) {
  const builder = batchBuilder(store.memory.of(tenantId), tenantId, sent.length, nowMs);
  for (const { timeMs, value, ...names } of sent) builder.add({ ...names, dimensions, ...noNotes }, timeMs, value);
  const batch = builder.batch();
  await transaction(db, (tx) => storePoints(store, tx, tenantId, [batch], nowMs));
  return [...batch.places.keys()].filter(
    (i) => batch.numbers[i] === 0 && batch.refused[batch.places[i] as number] !== undefined,
  );
}

/** Merges until nothing is due any more. */
export async function mergeAll(db: Sql, tenantId: string, nowMs = Date.now()) {
  for (let next = nowMs; next <= nowMs; ) next = await transaction(db, (tx) => mergeHead(tx, tenantId, nowMs, true));
}

const signal = new AbortController().signal;

/** Each series of a tenant with its points between two times. */
export async function storedSeries(db: Db, tenantId: string, firstMs: number, lastMs: number) {
  const rows = await db<{ number: number; metric: string; labels: Record<string, string> | null }[]>`
    select number::float8 as number, metric, labels from series where tenant_id = ${tenantId}`;
  if (rows.length === 0) return [];
  const numbers = rows.map(({ number }) => number);
  const found = await readPoints(db, tenantId, numbers, { firstMs, lastMs }, { signal, pace: paced() });
  return rows.map(({ number, metric, labels }) => {
    const { times, values } = found.get(number) ?? { times: [], values: [] };
    const points = [...times].map((time, i) => [time, values[i] as number] as const);
    return { number, metric, labels: labels ?? {}, points };
  });
}

/** What is stored of a tenant between two times, by metric. */
export async function stored(db: Db, tenantId: string, firstMs: number, lastMs: number) {
  const series = await storedSeries(db, tenantId, firstMs, lastMs);
  return Object.fromEntries(series.map(({ metric, points }) => [metric, points]));
}

/** The partitions that points between two times need. */
export function makeRoom(sql: Sql, firstMs: number, lastMs: number) {
  const dayMs = 86_400_000;
  const span = lastMs - firstMs;
  const table = { table: "metric_chunks", widthMs: 30 * dayMs, backMs: span, aheadMs: 0, keepMs: 10 * span };
  return keepPartitions(sql, table, lastMs);
}
