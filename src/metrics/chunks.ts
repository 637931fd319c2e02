import { bigintArray, byteaArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { decodeChunk, encodeChunk, type Points } from "./codec/chunk.ts";
import { mergedPoints } from "./merged-points.ts";

/** A chunk lies within one day of UTC. */
export const CHUNK_SPAN_MS = 86_400_000;

/** Points of a chunk: one that has as many is full. A day of points every 10 s has 8,640. */
const pointsFull = 16_384;
/** A chunk of fewer points is written again with whatever comes after it: its row costs more than its points. */
const pointsSmall = 512;

/** New points of one series within one day, and the chunks that they belong into or behind. */
interface DayOfPoints {
  series: number;
  points: Points;
  old: { firstMs: number; points: Points }[];
}

const firstOf = ({ times }: Points) => times[0] as number;
const lastOf = ({ times }: Points) => times.at(-1) as number;
const dayOf = (timeMs: number) => Math.floor(timeMs / CHUNK_SPAN_MS) * CHUNK_SPAN_MS;

/** Points, in the order of their times, by the days of UTC. */
function byDay({ times, values }: Points): Points[] {
  const days: Points[] = [];
  for (let from = 0; from < times.length; ) {
    const endMs = dayOf(times[from] as number) + CHUNK_SPAN_MS;
    let to = from + 1;
    while (to < times.length && (times[to] as number) < endMs) to += 1;
    days.push({ times: times.subarray(from, to), values: values.subarray(from, to) });
    from = to;
  }
  return days;
}

/**
 * Finds the chunks that the portions change: those that hold or lie behind a new point, and before them those that are small,
 * or hold no more points than there are after them. So a day has few chunks, and each point is written a few times only: once
 * whenever its chunk becomes twice as large.
 */
async function readOld(tx: Db, tenantId: string, portions: readonly DayOfPoints[]): Promise<void> {
  const times = (of: (portion: DayOfPoints) => number) => bigintArray(portions.map((portion) => BigInt(of(portion))));
  // By the primary key, within one partition.
  const rows = await tx<{ place: bigint; first_ms: bigint; chunk: Buffer }[]>`
    select n.place, c.first_ms, c.chunk
    from unnest(
      ${times(({ series }) => series)}::bigint[],
      ${times(({ points }) => dayOf(firstOf(points)))}::bigint[],
      ${times(({ points }) => firstOf(points))}::bigint[],
      ${int4Array(portions.map(({ points }) => points.times.length))}::int4[]
    ) with ordinality as n (series, day, first_ms, points, place)
    cross join lateral (
      select first_ms, chunk, bool_or(joins) over (order by first_ms) as joined from (
        select first_ms, chunk, last_ms >= n.first_ms
          or points < ${pointsFull}::int4 and (points < ${pointsSmall}::int4 or points <= n.points + sum(points) over behind
            - points) as joins
        from metric_chunks
        where tenant_id = ${tenantId} and series = n.series
          and first_ms >= n.day and first_ms < n.day + ${BigInt(CHUNK_SPAN_MS)}
        window behind as (order by first_ms desc)
      ) as of_the_day
    ) as c
    where c.joined
    order by n.place, c.first_ms`;
  for (const { place, first_ms, chunk } of rows) {
    portions[Number(place) - 1]?.old.push({ firstMs: Number(first_ms), points: decodeChunk(chunk) });
  }
}

/** Adds points to the chunks of their series, in the caller's transaction; each series in the order of its times. */
export async function writeChunks(tx: Db, tenantId: string, added: ReadonlyMap<number, Points>): Promise<void> {
  const portions = [...added].flatMap(([series, points]) =>
    byDay(points).map((day): DayOfPoints => ({ series, points: day, old: [] })),
  );
  if (portions.length === 0) return;
  await readOld(tx, tenantId, portions);
  const made: { series: number; points: Points }[] = [];
  const gone: { series: number; firstMs: number }[] = [];
  for (const { series, points, old } of portions) {
    const all = mergedPoints([...old.map((chunk) => chunk.points), points]);
    const kept = new Set<number>();
    for (let from = 0; from < all.times.length; from += pointsFull) {
      const piece = {
        times: all.times.subarray(from, from + pointsFull),
        values: all.values.subarray(from, from + pointsFull),
      };
      made.push({ series, points: piece });
      kept.add(firstOf(piece));
    }
    for (const { firstMs } of old) if (!kept.has(firstMs)) gone.push({ series, firstMs });
  }
  await replace(tx, tenantId, made, gone);
}

async function replace(
  tx: Db,
  tenantId: string,
  made: readonly { series: number; points: Points }[],
  gone: readonly { series: number; firstMs: number }[],
): Promise<void> {
  if (gone.length > 0) {
    const series = bigintArray(gone.map((each) => BigInt(each.series)));
    const firstMs = bigintArray(gone.map((each) => BigInt(each.firstMs)));
    const pairs = JSON.stringify(gone.map((each) => `${each.series} ${each.firstMs}`));
    // The two lists bound what is read; of these, the pairs go.
    await tx`
      delete from metric_chunks
      where tenant_id = ${tenantId} and series = any(${series}::bigint[]) and first_ms = any(${firstMs}::bigint[])
        and ${pairs}::jsonb ? (series || ' ' || first_ms)`;
  }
  await tx`
    insert into metric_chunks (tenant_id, series, first_ms, last_ms, points, chunk)
    select home.tenant_id, series, first_ms, last_ms, points, chunk from ${home(tx, tenantId)}, unnest(
      ${bigintArray(made.map(({ series }) => BigInt(series)))}::bigint[],
      ${bigintArray(made.map(({ points }) => BigInt(firstOf(points))))}::bigint[],
      ${bigintArray(made.map(({ points }) => BigInt(lastOf(points))))}::bigint[],
      ${int4Array(made.map(({ points }) => points.times.length))}::int4[],
      ${byteaArray(made.map(({ points }) => encodeChunk(points)))}::bytea[]
    ) as made (series, first_ms, last_ms, points, chunk)
    on conflict (tenant_id, series, first_ms) do update
      set last_ms = excluded.last_ms, points = excluded.points, chunk = excluded.chunk`;
}
