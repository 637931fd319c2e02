import { ClosedBy } from "#gen/belfry/events/v1/event_pb.ts";
import { byteaArray, int4Array, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { planWithoutSorts } from "../db/plans.ts";
import { lockJob, runBy } from "../jobs/queue.ts";
import type { JobKind } from "../jobs/worker.ts";
import { newAnnotationId } from "./annotate.ts";
import type { Change, StoreChanges } from "./changes.ts";
import { closed } from "./lifecycle.ts";
import { lockEvents } from "./lock.ts";
import { type OccurrenceKey, occurrenceText, readOccurrences } from "./occurrences.ts";

/** The name of the jobs that close what has expired, one of a tenant, while anything of it may expire. */
const expiryKind = "events.expiry";
const jobId = "expiry";
/** How many occurrences one run closes. */
const portion = 1000;
/** The job looks no more often. */
const stepMs = 500;

const author = "belfry";
const note = "Closed by the service: no report came before expiresAt";

/** The time of the job that closes what expires then. */
const dueFor = (expiresMs: bigint) => Math.ceil(Number(expiresMs) / stepMs) * stepMs;

/**
 * Sees to it that the tenant's job runs when this expires. Called before the rules decide: of all that two transactions lock
 * besides their events, this comes first.
 */
export async function announceExpiry(tx: Db, tenantId: string, expiresMs: bigint, nowMs: number): Promise<void> {
  await runBy(tx, { tenantId, kind: expiryKind }, jobId, Math.max(dueFor(expiresMs), 0), nowMs);
}

/** What has expired by a time, the first to expire first, by occurrences_expiry. */
async function readExpired(tx: Db, tenantId: string, nowMs: number): Promise<OccurrenceKey[]> {
  return await tx<OccurrenceKey[]>`
    select event_id as "eventId", number from occurrences
    where tenant_id = ${tenantId} and end_ms is null and expires_ms is not null and expires_ms <= ${BigInt(nowMs)}
    order by expires_ms, event_id limit ${portion}`;
}

/** When the next of the other events' occurrences expires; undefined: none does. */
async function readNext(tx: Db, tenantId: string, without: readonly Buffer[]): Promise<bigint | undefined> {
  const [next] = await tx<{ expiresMs: bigint }[]>`
    select expires_ms as "expiresMs" from occurrences
    where tenant_id = ${tenantId} and end_ms is null and expires_ms is not null
      and event_id <> all(${byteaArray(without)}::bytea[])
    order by expires_ms, event_id limit 1`;
  return next?.expiresMs;
}

interface ExpiryRun {
  nowMs: number;
  store: StoreChanges;
  announce?(next: bigint | undefined): Promise<void>;
}

/**
 * Closes occurrences of a tenant whose time has passed, each at that time and with a note that says so. Returns when the next
 * one expires, which `announce` notes under the locks of those that it closes, where there are any. May be repeated.
 */
export async function expireOccurrences(
  tx: Db,
  tenantId: string,
  { nowMs, store, announce }: ExpiryRun,
): Promise<bigint | undefined> {
  // No plan sorts what occurrences_expiry has in order, however few are thought to be open (design/events).
  await planWithoutSorts(tx);
  const keys = await readExpired(tx, tenantId, nowMs);
  const ids = [...new Map(keys.map(({ eventId }) => [eventId.toString("latin1"), eventId])).values()];
  const locked = await lockEvents(tx, tenantId, ids);
  // Found without a lock, so judged again.
  const occurrences = await readOccurrences(tx, tenantId, keys);
  // Waits for those that have announced an expiry meanwhile, and keeps others from doing so until it is known what is next.
  await lockJob(tx, { tenantId, kind: expiryKind }, jobId);
  let next = await readNext(tx, tenantId, ids);
  const changes: Change[] = [];
  const ended: OccurrenceKey[] = [];
  for (const key of keys) {
    const found = occurrences.get(occurrenceText(key));
    if (found === undefined || found.occurrence.endMs !== null) continue;
    const { event, occurrence: before } = found;
    if (before.expiresMs === null) continue;
    if (before.expiresMs <= BigInt(nowMs)) {
      changes.push({ event, before, after: closed(before, before.expiresMs, ClosedBy.EXPIRY), instance: undefined });
      ended.push(key);
    } else if (next === undefined || before.expiresMs < next) next = before.expiresMs;
  }
  if (ended.length > 0) await writeNotes(tx, tenantId, ended, BigInt(nowMs));
  await store(tx, locked, changes, nowMs, { announce: async () => await announce?.(next) });
  return next;
}

async function writeNotes(tx: Db, tenantId: string, keys: readonly OccurrenceKey[], nowMs: bigint): Promise<void> {
  await tx`
    insert into annotations (tenant_id, event_id, number, id, text, created_by, created_ms, updated_ms, place)
    select home.tenant_id, event_id, number, id, ${note}, ${author}, ${nowMs}::bigint, ${nowMs}::bigint, 0
    from ${home(tx, tenantId)}, unnest(
      ${byteaArray(keys.map(({ eventId }) => eventId))}::bytea[],
      ${int4Array(keys.map(({ number }) => number))}::int4[],
      ${textArray(keys.map(() => newAnnotationId()))}::text[]
    ) as note (event_id, number, id)`;
}

/** The jobs that close what has expired, for the worker. */
export function expiryJobs(store: StoreChanges): JobKind {
  return {
    name: expiryKind,
    sizeMax: 1,
    timed: true,
    leaseMs: 2000,
    async run(tx, tenantId, jobs, nowMs, finish) {
      const again = (next: bigint | undefined) =>
        next === undefined
          ? []
          : jobs.map(({ id, payload }) => ({ id, payload, dueMs: Math.max(dueFor(next), nowMs) }));
      const announce = async (next: bigint | undefined) => await finish?.(again(next));
      return again(await expireOccurrences(tx, tenantId, { nowMs, store, announce }));
    },
  };
}
