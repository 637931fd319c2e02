import { bigintArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import type { Pace } from "../event-loop.ts";
import { CHUNK_SPAN_MS } from "./chunks.ts";
import { decodeChunk, type Points } from "./codec/chunk.ts";
import { decodeHeadBlock, ofSeries } from "./codec/head-block.ts";
import { HEAD_BUCKETS } from "./head.ts";
import { mergedPoints } from "./merged-points.ts";

/** A span of time: its first moment, and its last one, ms. */
export interface Span {
  firstMs: number;
  lastMs: number;
}

/** When a search ends early, and how it takes turns with others. */
export interface Turns {
  signal: AbortSignal;
  pace: Pace;
}

interface StoredRow {
  /** Null for a block of the head. */
  series: bigint | null;
  bytes: Buffer | null;
}

/** How many points chunks of these series hold in and around a span; those of the head are not counted. */
export async function countPoints(
  db: Db,
  tenantId: string,
  series: readonly number[],
  { firstMs, lastMs }: Span,
  signal: AbortSignal,
): Promise<Map<number, number>> {
  const rows = await cancelOn(
    db<{ series: number; points: number }[]>`
      select series::float8 as series, sum(points)::float8 as points from metric_chunks
      where tenant_id = ${tenantId} and series = any(${bigintArray(series.map(BigInt))}::bigint[])
        and first_ms > ${BigInt(firstMs - CHUNK_SPAN_MS)} and first_ms <= ${BigInt(lastMs)} and last_ms >= ${BigInt(firstMs)}
      group by series`,
    signal,
  );
  return new Map(rows.map((row) => [row.series, row.points]));
}

/**
 * The points of these series in a span, and some around it, each series in the order of its times; undefined where chunks
 * hold more than `max` of them. All that was committed before the call is among them: chunks and head are read by one
 * statement, so of one moment.
 */
export async function readPointsUpTo(
  db: Db,
  tenantId: string,
  series: readonly number[],
  { firstMs, lastMs }: Span,
  max: number,
  { signal, pace }: Turns,
): Promise<Map<number, Points> | undefined> {
  const numbers = bigintArray(series.map(BigInt));
  const buckets = [...new Set(series.map((number) => number % HEAD_BUCKETS))];
  // Chunks by their primary key, in the partitions of the span; the head by its own. Bytes null: there are too many.
  const rows = await cancelOn(
    db<StoredRow[]>`
      with chunks as materialized (
        select series, first_ms, points, chunk from metric_chunks
        where tenant_id = ${tenantId} and series = any(${numbers}::bigint[])
          and first_ms > ${BigInt(firstMs - CHUNK_SPAN_MS)} and first_ms <= ${BigInt(lastMs)} and last_ms >= ${BigInt(firstMs)}
      ), size as (
        select coalesce(sum(points), 0) <= ${max}::int8 as fits from chunks
      )
      select series, bytes from (
        select null::int8 as series, 0::int8 as place, 0 as part, null::bytea as bytes from size where not fits
        union all
        select series, first_ms, 0, chunk from chunks where (select fits from size)
        union all
        select null, written_us, part, block from metric_heads
        where tenant_id = ${tenantId} and bucket = any(${int4Array(buckets)}::smallint[])
          and first_series <= ${BigInt(Math.max(...series))} and last_series >= ${BigInt(Math.min(...series))}
          and first_ms <= ${BigInt(lastMs)} and last_ms >= ${BigInt(firstMs)} and (select fits from size)
      ) as stored
      order by series nulls last, place, part`,
    signal,
  );
  const parts = new Map<number, Points[]>(series.map((number) => [number, []]));
  for (const { series: number, bytes } of rows) {
    const turn = pace();
    if (turn !== undefined) await turn;
    if (bytes === null) return undefined;
    if (number !== null) {
      parts.get(Number(number))?.push(decodeChunk(bytes));
      continue;
    }
    const block = decodeHeadBlock(bytes);
    for (const [own, list] of parts) {
      const points = ofSeries(block, own);
      if (points !== undefined) list.push(points);
    }
  }
  const found = new Map<number, Points>();
  for (const [number, list] of parts) {
    const turn = pace();
    if (turn !== undefined) await turn;
    found.set(number, mergedPoints(list));
  }
  return found;
}

/** The same, however many there are. */
export async function readPoints(
  db: Db,
  tenantId: string,
  series: readonly number[],
  span: Span,
  turns: Turns,
): Promise<Map<number, Points>> {
  return (await readPointsUpTo(db, tenantId, series, span, Number.MAX_SAFE_INTEGER, turns)) ?? new Map();
}
