import type { Fragment } from "postgres";
import { bigintArray, byteaArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { encodeHeadBlock, type HeadPoints } from "./codec/head-block.ts";

/** The head of a tenant lies in this many parts: those of series whose numbers leave the same rest. */
export const HEAD_BUCKETS = 16;

/** Points of any series in the order of their arrival. */
export interface PointColumns {
  /** Numbers of series. */
  series: Float64Array;
  times: Float64Array;
  values: Float64Array;
}

/** Points that one block may hold; the places of more could not be distinguished while they are sorted. */
const blockPointsMax = 2 ** 17;

/** Points of one bucket as they are written. */
export interface HeadRow {
  bucket: number;
  points: HeadPoints;
}

/** The points by bucket and series, those of one series in the order of their arrival. */
export function headRows({ series, times, values }: PointColumns): HeadRow[] {
  const rows: HeadRow[] = [];
  for (let from = 0; from < series.length; from += blockPointsMax) {
    const to = Math.min(from + blockPointsMax, series.length);
    // Bucket, then number, then arrival, as one number of 51 bits: numbers sort in a tenth of the time of a comparison.
    const keys = new Float64Array(to - from);
    for (let i = from; i < to; i++) {
      const number = series[i] as number;
      const rest = number % HEAD_BUCKETS;
      keys[i - from] = (rest * 2 ** 30 + (number - rest) / HEAD_BUCKETS) * blockPointsMax + (i - from);
    }
    keys.sort();
    rows.push(...split(keys, from, { series, times, values }));
  }
  return rows;
}

function split(keys: Float64Array, offset: number, all: PointColumns): HeadRow[] {
  const rows: HeadRow[] = [];
  const count = keys.length;
  const placeOf = (i: number) => offset + ((keys[i] as number) % blockPointsMax);
  for (let from = 0; from < count; ) {
    const bucket = (all.series[placeOf(from)] as number) % HEAD_BUCKETS;
    let to = from;
    const numbers: number[] = [];
    const counts: number[] = [];
    while (to < count) {
      const number = all.series[placeOf(to)] as number;
      if (number % HEAD_BUCKETS !== bucket) break;
      if (numbers.at(-1) === number) (counts[counts.length - 1] as number)++;
      else {
        numbers.push(number);
        counts.push(1);
      }
      to += 1;
    }
    const times = new Float64Array(to - from);
    const values = new Float64Array(to - from);
    for (let i = from; i < to; i++) {
      const place = placeOf(i);
      times[i - from] = all.times[place] as number;
      values[i - from] = all.values[place] as number;
    }
    const points = { series: Float64Array.from(numbers), counts: Uint32Array.from(counts), times, values };
    rows.push({ bucket, points });
    from = to;
  }
  return rows;
}

/** The earliest and the latest of some times. */
function bounds(times: Float64Array): [number, number] {
  let first = Infinity;
  let last = -Infinity;
  for (const time of times) {
    if (time < first) first = time;
    if (time > last) last = time;
  }
  return [first, last];
}

const big = (number: number) => BigInt(number);

/**
 * Writes points to the head, one row a bucket. The rows' time is the database's, so that what is sent after another's
 * answer comes after it on every replica.
 */
export async function writeHead(tx: Db, tenantId: string, columns: PointColumns): Promise<void> {
  await writeRows(
    tx,
    tenantId,
    headRows(columns),
    0,
    tx`(extract(epoch from statement_timestamp()) * 1000000)::bigint`,
  );
}

/** Writes rows of a level that replace rows up to `writtenUs`. */
export async function writeGathered(
  tx: Db,
  tenantId: string,
  rows: readonly HeadRow[],
  level: number,
  writtenUs: bigint,
): Promise<void> {
  await writeRows(tx, tenantId, rows, level, tx`${writtenUs}::bigint`);
}

async function writeRows(tx: Db, tenantId: string, rows: readonly HeadRow[], level: number, written: Fragment) {
  if (rows.length === 0) return;
  const spans = rows.map(({ points }) => bounds(points.times));
  await tx`
    insert into metric_heads
      (tenant_id, bucket, written_us, part, level, first_series, last_series, first_ms, last_ms, points, block)
    select home.tenant_id, bucket, ${written}, part, ${level}::smallint, first_series, last_series, first_ms, last_ms,
      points, block
    from ${home(tx, tenantId)}, unnest(
      ${int4Array(rows.map(({ bucket }) => bucket))}::smallint[],
      ${int4Array(rows.map(() => Math.floor(Math.random() * 2 ** 31)))}::int4[],
      ${bigintArray(rows.map(({ points }) => big(points.series[0] as number)))}::bigint[],
      ${bigintArray(rows.map(({ points }) => big(points.series.at(-1) as number)))}::bigint[],
      ${bigintArray(spans.map(([first]) => big(first)))}::bigint[],
      ${bigintArray(spans.map(([, last]) => big(last)))}::bigint[],
      ${int4Array(rows.map(({ points }) => points.times.length))}::int4[],
      ${byteaArray(rows.map(({ points }) => encodeHeadBlock(points)))}::bytea[]
    ) as sent (bucket, part, first_series, last_series, first_ms, last_ms, points, block)`;
}
