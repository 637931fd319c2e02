import { setImmediate as nextTurn } from "node:timers/promises";
import type { Db, Sql } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { every } from "../every.ts";
import { enqueue, hasten } from "../jobs/queue.ts";
import type { JobKind } from "../jobs/worker.ts";
import { firstAtOrAfter } from "./aggregate.ts";
import { writeChunks } from "./chunks.ts";
import type { Points } from "./codec/chunk.ts";
import { decodeHeadBlock, type HeadPoints } from "./codec/head-block.ts";
import { HEAD_BUCKETS, writeGathered } from "./head.ts";
import { mergedPoints } from "./merged-points.ts";

/** The kind of the one job of each tenant that merges its head, again and again. */
const mergeKind = "metrics.merge";
const jobId = "head";

/** Rows of this level wait for nothing but their turn to become chunks. */
const READY = 9;
/** As many writes of one level are gathered into one of the next. */
const writesMax = 16;
/** Points of a row that a gathering writes. */
const rowPoints = 8192;
/** Points that one transaction takes on, unless one row has more. */
const pointsMax = 400_000;
/** A series' points become a part of a chunk when there are this many of them, on average over a bucket … */
const pointsOfSeries = 120;
/** … or when the oldest have waited this long. */
const ageMsMax = 3_600_000;
/** Points that a bucket may hold, whatever the number of its series. */
const bucketPointsMax = 4_000_000;

/** How soon the head is looked at again where there was something to do. */
const busyMs = 1000;

/** What lies in one bucket of the head, by level. */
interface LevelState {
  bucket: number;
  level: number;
  writes: number;
  points: number;
  oldestUs: number;
  firstSeries: number;
  lastSeries: number;
}

/** What to do with a bucket: make chunks of its rows of some levels, or gather them as rows of another level. */
interface Step {
  bucket: number;
  from: number;
  upTo: number;
  to: "chunks" | number;
}

/** Begins the merging of a tenant's head, in the transaction that makes its first series. */
export async function beginMerging(tx: Db, tenantId: string, nowMs: number): Promise<void> {
  await enqueue(tx, { tenantId, kind: mergeKind }, [{ id: jobId, payload: {}, dueMs: nowMs + busyMs }], nowMs);
}

/**
 * Points have come: the head is looked at soon. A hint, outside of the transaction that stored them. Without it the head is
 * looked at when its oldest points are an hour old, or after an hour when it was empty.
 */
export async function hastenMerging(tx: Db, tenantId: string, nowMs: number): Promise<void> {
  await hasten(tx, { tenantId, kind: mergeKind }, jobId, nowMs);
}

async function readLevels(tx: Db, tenantId: string): Promise<LevelState[]> {
  return await tx<LevelState[]>`
    select bucket, level, count(distinct written_us)::float8 as writes, sum(points)::float8 as points,
      min(written_us)::float8 as "oldestUs", min(first_series)::float8 as "firstSeries",
      max(last_series)::float8 as "lastSeries"
    from metric_heads where tenant_id = ${tenantId} group by bucket, level order by bucket, level desc`;
}

/** What a bucket needs most; undefined: nothing. */
function stepFor(levels: readonly LevelState[], nowMs: number, all: boolean): Step | undefined {
  const bucket = levels[0]?.bucket as number;
  if (levels[0]?.level === READY) return { bucket, from: READY, upTo: READY, to: "chunks" };
  const points = levels.reduce((total, level) => total + level.points, 0);
  const lastSeries = Math.max(...levels.map((level) => level.lastSeries));
  const firstSeries = Math.min(...levels.map((level) => level.firstSeries));
  const series = Math.min(points, (lastSeries - firstSeries) / HEAD_BUCKETS + 1);
  const oldestMs = Math.min(...levels.map(({ oldestUs }) => oldestUs)) / 1000;
  const ripe = points >= pointsOfSeries * series || points >= bucketPointsMax || nowMs - oldestMs >= ageMsMax;
  if (all || ripe) {
    if (points <= pointsMax) return { bucket, from: 0, upTo: READY, to: "chunks" };
    // By series first, so that they can become chunks in several transactions.
    return { bucket, from: 0, upTo: READY - 1, to: READY };
  }
  const crowded = levels.find(({ writes }) => writes >= writesMax);
  return crowded && { bucket, from: 0, upTo: crowded.level, to: Math.min(crowded.level + 1, READY - 1) };
}

interface TakenRow {
  writtenUs: bigint;
  points: HeadPoints;
}

/** Takes the oldest rows of a bucket, of the levels that a step is about, out of the head; the oldest first. */
async function takeRows(tx: Db, tenantId: string, step: Step): Promise<TakenRow[]> {
  const limit = step.to === READY ? 2 * bucketPointsMax : pointsMax;
  const rows = await tx<{ written_us: bigint; block: Buffer }[]>`
    with oldest as materialized (
      select written_us, part, sum(points) over (order by written_us, part) - points as before from metric_heads
      where tenant_id = ${tenantId} and bucket = ${step.bucket} and level between ${step.from} and ${step.upTo}
    ), taken as (
      delete from metric_heads
      where tenant_id = ${tenantId} and bucket = ${step.bucket} and level between ${step.from} and ${step.upTo}
        and (written_us, part) <= (
          select written_us, part from oldest where before < ${limit}::int8 order by written_us desc, part desc limit 1
        )
      returning written_us, part, block
    )
    select written_us, block from taken order by written_us, part`;
  return rows.map(({ written_us, block }) => ({ writtenUs: written_us, points: decodeHeadBlock(block) }));
}

/** Points that are copied or merged before others have a turn. */
const turnPoints = 65_536;

/**
 * The points of each series in blocks, the oldest block first, by number; those of a series merged. They are gathered in two
 * large columns: a pair of arrays for each series of each block took longer than the rest of merging.
 */
async function bySeries(blocks: readonly HeadPoints[]): Promise<Map<number, Points>> {
  const counted = new Map<number, number>();
  for (const { series, counts } of blocks) {
    for (let i = 0; i < series.length; i++) {
      const number = series[i] as number;
      counted.set(number, (counted.get(number) ?? 0) + (counts[i] as number));
    }
  }
  const numbers = Float64Array.from(counted.keys()).sort();
  /** Where the next point of each series goes. */
  const places = new Map<number, number>();
  let total = 0;
  for (const number of numbers) {
    places.set(number, total);
    total += counted.get(number) as number;
  }
  const all: Points = { times: new Float64Array(total), values: new Float64Array(total) };
  let done = 0;
  async function turn(points: number) {
    if (Math.floor((done + points) / turnPoints) > Math.floor(done / turnPoints)) await nextTurn();
    done += points;
  }
  for (const block of blocks) {
    spread(block, places, all);
    await turn(block.times.length);
  }
  const merged = new Map<number, Points>();
  let from = 0;
  for (const number of numbers) {
    const to = places.get(number) as number;
    merged.set(number, mergedPoints([{ times: all.times.subarray(from, to), values: all.values.subarray(from, to) }]));
    await turn(to - from);
    from = to;
  }
  return merged;
}

/** Copies the points of a block to the places of their series, and moves these places after them. */
function spread({ series, counts, times, values }: HeadPoints, places: Map<number, number>, into: Points): void {
  let from = 0;
  for (let i = 0; i < series.length; i++) {
    const number = series[i] as number;
    const to = from + (counts[i] as number);
    let at = places.get(number) as number;
    while (from < to) {
      into.times[at] = times[from] as number;
      into.values[at++] = values[from++] as number;
    }
    places.set(number, at);
  }
}

/** Series by series, in rows of about `rowPoints` points. */
function* gathered(merged: ReadonlyMap<number, Points>): Generator<HeadPoints> {
  let waiting: [number, Points][] = [];
  let count = 0;
  for (const entry of merged) {
    waiting.push(entry);
    count += entry[1].times.length;
    if (count < rowPoints) continue;
    yield toBlock(waiting, count);
    waiting = [];
    count = 0;
  }
  if (count > 0) yield toBlock(waiting, count);
}

function toBlock(entries: readonly [number, Points][], count: number): HeadPoints {
  const times = new Float64Array(count);
  const values = new Float64Array(count);
  let at = 0;
  for (const [, points] of entries) {
    times.set(points.times, at);
    values.set(points.values, at);
    at += points.times.length;
  }
  return {
    series: Float64Array.from(entries, ([number]) => number),
    counts: Uint32Array.from(entries, ([, points]) => points.times.length),
    times,
    values,
  };
}

/** Those that are not before a time. Of what is older there may be no partition any more that takes it. */
function since(merged: ReadonlyMap<number, Points>, oldestMs: number): Map<number, Points> {
  const kept = new Map<number, Points>();
  for (const [number, { times, values }] of merged) {
    const from = firstAtOrAfter(times, oldestMs);
    if (from < times.length) kept.set(number, { times: times.subarray(from), values: values.subarray(from) });
  }
  return kept;
}

/** Does one step; returns how many points it has moved. */
async function carryOut(tx: Db, tenantId: string, { to, bucket, ...rest }: Step, oldestMs: number): Promise<number> {
  const rows = await takeRows(tx, tenantId, { to, bucket, ...rest });
  const merged = await bySeries(rows.map(({ points }) => points));
  const newest = rows.at(-1);
  if (to === "chunks") await writeChunks(tx, tenantId, since(merged, oldestMs));
  else if (newest !== undefined) {
    const made = [...gathered(merged)].map((points) => ({ bucket, points }));
    // As old as the newest of the rows that they stand for: what was written later stays later.
    await writeGathered(tx, tenantId, made, to, newest.writtenUs);
  }
  return rows.reduce((total, { points }) => total + points.times.length, 0);
}

/** What merging has to heed beside the head itself. */
interface Merging {
  /** Points that are older are not kept. */
  keepMs?: number;
  onMoved?(points: number): void;
}

/**
 * Merges what is due of a tenant's head, in the caller's transaction: as much as one transaction should take on. Answers
 * when there is more to do, ms. With `all` everything is due.
 */
export async function mergeHead(
  tx: Db,
  tenantId: string,
  nowMs: number,
  all = false,
  { keepMs = Number.POSITIVE_INFINITY, onMoved = () => {} }: Merging = {},
): Promise<number> {
  const levels = await readLevels(tx, tenantId);
  const buckets = Map.groupBy(levels, ({ bucket }) => bucket);
  const steps = [...buckets.values()].flatMap((own) => stepFor(own, nowMs, all) ?? []);
  let moved = 0;
  let done = 0;
  for (const step of steps) {
    if (moved >= pointsMax) break;
    moved += await carryOut(tx, tenantId, step, nowMs - keepMs);
    done += 1;
  }
  onMoved(moved);
  const more = done < steps.length || steps.some(({ to }) => to === READY || moved >= pointsMax);
  if (more) return nowMs;
  if (steps.length > 0) return nowMs + busyMs;
  const oldestMs = Math.min(nowMs, ...levels.map(({ oldestUs }) => oldestUs / 1000));
  return Math.ceil(oldestMs + ageMsMax);
}

/** The job that merges, for the worker. */
export function mergingKind(retentionSec: number): JobKind & { stats(): { points: number } } {
  const stats = { points: 0 };
  const merging: Merging = {
    keepMs: retentionSec * 1000,
    onMoved(points) {
      stats.points += points;
    },
  };
  return {
    stats: () => stats,
    name: mergeKind,
    sizeMax: 1,
    async run(tx, tenantId, jobs, nowMs) {
      const dueMs = await mergeHead(tx, tenantId, nowMs, false, merging);
      return jobs.map(({ id }) => ({ id, dueMs, payload: {} }));
    },
  };
}

/** Informs the jobs that merge of new points, so that tenants without any have no job to run. */
export interface MergeCandidates {
  /** Points of a tenant were stored. */
  note(tenantId: string): void;
  /** Reports what was noted, and no more afterwards. */
  stop(): Promise<void>;
}

/** Starts to report, once in `periodMs` a tenant. A hint that is lost delays merging by an hour at most, and no search. */
export function mergeCandidates(sql: Sql, nowMs: () => number, periodMs = 10_000): MergeCandidates {
  let noted = new Set<string>();

  async function tell() {
    const tenants = noted;
    noted = new Set();
    for (const tenantId of tenants) {
      await transaction(sql, (tx) => hastenMerging(tx, tenantId, nowMs())).catch(() => undefined);
    }
  }

  const rounds = every(periodMs, tell);
  return {
    note: (tenantId) => void noted.add(tenantId),
    async stop() {
      await rounds.stop();
      await tell();
    },
  };
}
