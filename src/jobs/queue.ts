import { randomUUIDv7 } from "node:crypto";
import type { Fragment } from "postgres";
import { bigintArray, int4Array, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { transaction } from "../db/transaction.ts";

/** A job to be done. */
export interface NewJob {
  /** Any JSON but null. */
  payload: unknown;
  /** How much work it is, in the unit of its kind; 1 when absent. */
  size?: number;
  /** Absent: now. */
  dueMs?: number;
  /** Of jobs with the same id the last one counts; in one call they differ. Absent: one of its own. */
  id?: string;
}

/** A job as its claim has found it. */
export interface Job {
  id: string;
  payload: unknown;
  size: number;
  dueMs: number;
  fence: bigint;
  failures: number;
}

/** A job that is to be done again, at this time. */
export interface Again {
  id: string;
  dueMs: number;
  payload: unknown;
}

/** What of a tenant's work is meant: one kind of its jobs. */
export interface Lane {
  tenantId: string;
  kind: string;
}

/** The lease of a job has ended before it was finished, or the job was replaced or cancelled: nothing of it is kept. */
export class LeaseLost extends Error {
  override name = "LeaseLost";
}

/** How many jobs one claim looks at. */
const nearMax = 1000;

/**
 * Adds jobs of one kind, in the caller's transaction: they are there when it commits. A job with the id of another that
 * is still to be done takes its place; a run of that one has no effect any more. Call it late in the transaction.
 */
export async function enqueue(
  tx: Db,
  { tenantId, kind }: Lane,
  newJobs: readonly NewJob[],
  nowMs: number,
): Promise<void> {
  if (newJobs.length === 0) return;
  const due = newJobs.map(({ dueMs }) => BigInt(dueMs ?? nowMs));
  const first = due.reduce((a, b) => (b < a ? b : a));
  const store = tx`
    insert into jobs as stored
      (tenant_id, kind, id, payload, size, due_ms, created_ms, fence, lease_until_ms, failures)
    select home.tenant_id, ${kind}, id, payload, size, due_ms, ${BigInt(nowMs)}, 0, 0, 0
    from ${home(tx, tenantId)}, unnest(
      ${textArray(newJobs.map(({ id }) => id ?? randomUUIDv7()))}::text[],
      ${jsonArray(newJobs.map(({ payload }) => payload))}::jsonb[],
      ${int4Array(newJobs.map(({ size }) => size ?? 1))}::int4[],
      ${bigintArray(due)}::bigint[]
    ) as job (id, payload, size, due_ms)
    on conflict (tenant_id, kind, id) do update set
      payload = excluded.payload, size = excluded.size, due_ms = excluded.due_ms, created_ms = excluded.created_ms,
      fence = stored.fence + 1, lease_until_ms = 0, failures = 0`;
  await Promise.all([store.execute(), announce(tx, { tenantId, kind }, first)]);
}

/**
 * Notes that a tenant has work of a kind at this time. Where that is known already, the row is only locked as sharers do,
 * so that transactions which enqueue do not wait for each other; `settle` cannot take it meanwhile.
 */
export async function announce(tx: Db, { tenantId, kind }: Lane, dueMs: bigint): Promise<void> {
  await tx`
    insert into due_work (tenant_id, kind, due_ms)
    select home.tenant_id, ${kind}, ${dueMs} from ${home(tx, tenantId)} where not exists (
      select from due_work
      where tenant_id = ${tenantId} and kind = ${kind} and due_ms <= ${dueMs} for key share
    )
    on conflict (tenant_id, kind) do update set due_ms = least(due_work.due_ms, excluded.due_ms)`;
}

/**
 * Moves the time of a job forward to `dueMs`, in the caller's transaction. A job that is due by then, has failed, or is not
 * there stays as it is. A hint: a run that ends meanwhile may set a later time.
 */
export async function hasten(tx: Db, { tenantId, kind }: Lane, id: string, dueMs: number): Promise<void> {
  const due = BigInt(dueMs);
  const moved = await tx`
    update jobs set due_ms = ${due}, created_ms = ${due}
    where tenant_id = ${tenantId} and kind = ${kind} and id = ${id} and due_ms > ${due} and failures = 0`;
  if (moved.count > 0) await announce(tx, { tenantId, kind }, due);
}

/** Takes a job back, in the caller's transaction; a run of it has no effect any more. May be repeated. */
export async function cancel(tx: Db, { tenantId, kind }: Lane, id: string): Promise<void> {
  await tx`delete from jobs where tenant_id = ${tenantId} and kind = ${kind} and id = ${id}`;
}

/**
 * Takes jobs of a lane that are due, the first due first: as many as together stay below `sizeMax`, at least one. One
 * that has failed is taken alone, so that it spoils no others. They are the caller's until `leaseMs` from now.
 */
export async function claim(
  db: Db,
  { tenantId, kind }: Lane,
  { sizeMax, leaseMs, nowMs }: { sizeMax: number; leaseMs: number; nowMs: number },
): Promise<Job[]> {
  const now = BigInt(nowMs);
  // By jobs_by_due, then by the key. What another claim takes meanwhile is seen under the lock.
  return await db<Job[]>`
    with near as materialized (
      select id, sum(size) over due - size as before, row_number() over due as place, failures,
        first_value(failures) over due as first_failures
      from (
        select id, due_ms, size, failures from jobs
        where tenant_id = ${tenantId} and kind = ${kind} and due_ms <= ${now} and size >= 0 and lease_until_ms <= ${now}
        order by due_ms, id limit ${nearMax}
      ) as first
      window due as (order by due_ms, id)
    ), taken as materialized (
      select id, payload, size, due_ms, fence, failures from jobs
      where tenant_id = ${tenantId} and kind = ${kind} and due_ms <= ${now} and lease_until_ms <= ${now}
        and id = any(array(
          select id from near
          where place = 1 or (failures = 0 and first_failures = 0 and before < ${sizeMax}::int8)
        ))
      for update skip locked
    ), claimed as (
      update jobs set fence = fence + 1, lease_until_ms = ${now + BigInt(leaseMs)}
      where tenant_id = ${tenantId} and kind = ${kind} and id = any(array(select id from taken))
    )
    select id, payload, size, due_ms::float8 as "dueMs", fence + 1 as fence, failures from taken`;
}

/** Conditions that hold for those of these jobs that are still the caller's. */
function held(db: Db, { tenantId, kind }: Lane, jobs: readonly Pick<Job, "id" | "fence">[]): Fragment {
  const fences = JSON.stringify(Object.fromEntries(jobs.map(({ id, fence }) => [id, String(fence)])));
  return db`tenant_id = ${tenantId} and kind = ${kind} and id = any(${textArray(jobs.map(({ id }) => id))}::text[])
    and fence = (${fences}::jsonb ->> id)::bigint`;
}

/** Keeps jobs for `leaseMs` more. What is no longer the caller's, or was given back, stays as it is. */
export async function renew(
  db: Db,
  lane: Lane,
  jobs: readonly Job[],
  { leaseMs, nowMs }: { leaseMs: number; nowMs: number },
): Promise<void> {
  await db`
    update jobs set lease_until_ms = ${BigInt(nowMs + leaseMs)} where ${held(db, lane, jobs)} and lease_until_ms > 0`;
}

/**
 * Ends jobs, in the transaction of their work: those of `again` wait for their next time, the others go. What the caller does
 * with them afterwards has no effect.
 * @throws LeaseLost when one of them is no longer the caller's, so that the work is undone with it.
 */
export async function finishJobs(
  tx: Db,
  lane: Lane,
  jobs: readonly Job[],
  again: readonly Again[] = [],
): Promise<void> {
  const next = new Map(again.map((each) => [each.id, each]));
  const done = jobs.filter(({ id }) => !next.has(id));
  const kept = jobs.flatMap((job) => {
    const then = next.get(job.id);
    return then === undefined ? [] : [{ ...then, fence: job.fence }];
  });
  let count = 0;
  if (done.length > 0) count += (await tx`delete from jobs where ${held(tx, lane, done)}`).count;
  if (kept.length > 0) {
    const dueMs = kept.map((each) => BigInt(each.dueMs));
    const then = JSON.stringify(
      Object.fromEntries(kept.map(({ id, payload, dueMs }) => [id, { payload, due: String(BigInt(dueMs)) }])),
    );
    count += (
      await tx`
        update jobs set payload = own.by_id -> id -> 'payload', due_ms = (own.by_id -> id ->> 'due')::bigint,
          created_ms = (own.by_id -> id ->> 'due')::bigint, lease_until_ms = 0, failures = 0, fence = fence + 1
        from (select ${then}::jsonb as by_id) as own
        where ${held(tx, lane, kept)}`
    ).count;
    await announce(
      tx,
      lane,
      dueMs.reduce((a, b) => (b < a ? b : a)),
    );
  }
  if (count < jobs.length) throw new LeaseLost(`${jobs.length - count} of ${jobs.length} jobs of ${lane.kind} went`);
}

/** Gives jobs back, to be claimed at `dueMs`; `failed` counts it against them. What is no longer the caller's stays as it is. */
export async function giveBackJobs(
  db: Db,
  lane: Lane,
  jobs: readonly Job[],
  dueMs: number,
  failed: boolean,
): Promise<void> {
  const due = BigInt(dueMs);
  await transaction(db, async (tx) => {
    await tx`
      update jobs set due_ms = greatest(due_ms, ${due}), lease_until_ms = 0, failures = failures + ${failed ? 1 : 0}
      where ${held(tx, lane, jobs)}`;
    await announce(tx, lane, due);
  });
}

/**
 * Moves on the time at which a lane has work, after a claim that found none; a lane without jobs goes. Does nothing while
 * another transaction enqueues there: its jobs must be found.
 */
export async function settleJobs(db: Db, { tenantId, kind }: Lane, nowMs: number): Promise<void> {
  const now = BigInt(nowMs);
  await transaction(db, async (tx) => {
    const locked = await tx`
      select from due_work where tenant_id = ${tenantId} and kind = ${kind} for update skip locked`;
    if (locked.count === 0) return;
    // What is due and claimed is due again when its lease ends, unless it is done by then.
    const [row] = await tx<[{ due: bigint | null }]>`
      select least(
        (select min(due_ms) from jobs where tenant_id = ${tenantId} and kind = ${kind}
          and due_ms > ${now} and size >= 0),
        (select min(lease_until_ms) from jobs where tenant_id = ${tenantId} and kind = ${kind}
          and due_ms <= ${now} and size >= 0)
      ) as due`;
    if (row.due === null) await tx`delete from due_work where tenant_id = ${tenantId} and kind = ${kind}`;
    else if (row.due > now)
      await tx`update due_work set due_ms = ${row.due} where tenant_id = ${tenantId} and kind = ${kind}`;
  });
}

/** What a job that is still to be done holds; undefined: there is none of this id. */
export async function payloadOf(db: Db, { tenantId, kind }: Lane, id: string): Promise<unknown> {
  const [job] = await db<{ payload: unknown }[]>`
    select payload from jobs where tenant_id = ${tenantId} and kind = ${kind} and id = ${id}`;
  return job?.payload;
}

/** Returns the first job, by its id, that is still to be done and whose id begins so; undefined: there is none. */
export async function firstOf(
  db: Db,
  { tenantId, kind }: Lane,
  prefix: string,
): Promise<{ payload: unknown; dueMs: number } | undefined> {
  const [job] = await db<{ payload: unknown; dueMs: number }[]>`
    select payload, due_ms::float8 as "dueMs" from jobs
    where tenant_id = ${tenantId} and kind = ${kind} and id >= ${prefix} and starts_with(id, ${prefix}) order by id limit 1`;
  return job;
}

/**
 * Tells when the newest job of a lane was made that a condition on `jobs` holds for, ms, up to `untilMs` and but for some;
 * undefined: there is none. By the primary key.
 */
export async function newestMs(
  tx: Db,
  { tenantId, kind }: Lane,
  { of, but, untilMs }: { of: Fragment; but: readonly string[]; untilMs: number | undefined },
): Promise<number | undefined> {
  const [row] = await tx<[{ ms: number | null }]>`
    select max(created_ms)::float8 as ms from jobs
    where tenant_id = ${tenantId} and kind = ${kind} and ${of}
      and created_ms <= ${BigInt(untilMs ?? Number.MAX_SAFE_INTEGER)} and id <> all(${textArray(but)}::text[])`;
  return row.ms ?? undefined;
}

/** Whether at least this many jobs of a lane are still to be done. By the key. */
export async function hasWaiting(tx: Db, { tenantId, kind }: Lane, count: number): Promise<boolean> {
  const [row] = await tx<[{ waiting: number }]>`
    select count(*)::int4 as waiting from (
      select from jobs where tenant_id = ${tenantId} and kind = ${kind} limit ${count}
    ) as waiting_jobs`;
  return row.waiting === count;
}

/**
 * Sees to it that a job of this id runs by `dueMs`, in the caller's transaction: one that is there keeps its payload. Where
 * one is due by then its row is only locked as sharers do, so that callers do not wait for each other, and a run that holds
 * `lockJob` is waited for.
 */
export async function runBy(tx: Db, { tenantId, kind }: Lane, id: string, dueMs: number, nowMs: number): Promise<void> {
  const due = BigInt(dueMs);
  const there = await tx`
    select from jobs
    where tenant_id = ${tenantId} and kind = ${kind} and id = ${id} and due_ms <= ${due} for key share`;
  if (there.count > 0) return;
  await tx`
    insert into jobs as stored
      (tenant_id, kind, id, payload, size, due_ms, created_ms, fence, lease_until_ms, failures)
    values (${tenantId}, ${kind}, ${id}, '{}', 1, ${due}, ${BigInt(nowMs)}, 0, 0, 0)
    on conflict (tenant_id, kind, id) do update set due_ms = least(stored.due_ms, excluded.due_ms)`;
  await announce(tx, { tenantId, kind }, due);
}

/** Locks a job until the transaction ends: what `runBy` has seen before is committed, and it waits for what follows. */
export async function lockJob(tx: Db, { tenantId, kind }: Lane, id: string): Promise<void> {
  await tx`select from jobs where tenant_id = ${tenantId} and kind = ${kind} and id = ${id} for update`;
}
