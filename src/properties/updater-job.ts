import type { JsonValue } from "@bufbuild/protobuf";
import { and, eq } from "drizzle-orm";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { toMatching } from "../clause/to-sql.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { afterCommit } from "../db/transaction.ts";
import { matchingIds, splitIds } from "../entities/batched-writes.ts";
import { lockEntities, writeCustomProperties } from "../entities/custom-properties.ts";
import { keysIn, noteKeys } from "../entities/field-keys.ts";
import { ID_BYTES } from "../entities/identity.ts";
import { readLiving } from "../entities/read.ts";
import { type Again, enqueue, hasWaiting, type Job, type NewJob } from "../jobs/queue.ts";
import type { JobKind } from "../jobs/worker.ts";
import { tenantNameOf } from "../tenants/tenant.ts";
import { evaluate, evaluationsMax, transactionPace } from "./evaluate.ts";
import { toQuery } from "./messages.ts";
import { readyUpdaters } from "./ready-updaters.ts";
import { propertyUpdaters } from "./tables.ts";
import { updaterResolver } from "./updater-fields.ts";
import { anyEnabled } from "./updater-set.ts";

/** Entities that a model has created or changed. */
const changedKind = "properties.changed";
/** All entities that an updater matches: found once, and left to jobs of the next kind. */
const startedKind = "properties.started";
/** Entities that an updater has matched when it was started. */
const matchedKind = "properties.matched";

/** Changes of the same entities within this time are one run. */
const gatherMs = 250;
/**
 * This many jobs over what updaters have matched may wait before another updater begins to look: each job is a hundred entities
 * and runs all updaters over them, whichever has matched them.
 */
const matchedMax = 10_000;
const postponeMs = 1000;
/** Entities a job; a run takes one or three: few enough that their locks are held for a short time. */
const portion = 100;

/**
 * The entities that a job is over. Servers up to 0.2.x note what changes beyond 5,000 waiting jobs by the first byte of the
 * entities' ids.
 */
type Payload = { ids: string } | { part: number };

/** Jobs over these entities. */
function jobsOf(ids: Buffer, dueMs?: number): NewJob[] {
  const found: NewJob[] = [];
  for (let at = 0; at < ids.byteLength; at += portion * ID_BYTES) {
    const some = ids.subarray(at, at + portion * ID_BYTES);
    const payload = { ids: some.toString("base64") } satisfies Payload;
    found.push({ payload, size: some.byteLength / ID_BYTES, ...(dueMs !== undefined && { dueMs }) });
  }
  return found;
}

const listsEntities = ({ payload }: Job) => "ids" in (payload as Payload);

/** The entities that jobs list, each once. */
function listedIn(jobs: readonly Job[]): Buffer[] {
  const distinct = new Map<string, Buffer>();
  for (const { payload } of jobs) {
    const { ids } = payload as { ids: string };
    for (const id of splitIds(Buffer.from(ids, "base64"))) distinct.set(id.toString("latin1"), id);
  }
  return [...distinct.values()];
}

/** Leaves jobs over the entities of parts, which these jobs are over. */
async function listParts(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number): Promise<void> {
  const parts = jobs.map(({ payload }) => (payload as { part: number }).part);
  if (parts.length === 0) return;
  const sql = tx`substr(id, 1, 1) = any(${byteaArray(parts.map((part) => Buffer.of(part)))}::bytea[])`;
  const portions = await matchingIds(tx, tenantId, { sql, sources: [] }, portion);
  const listed = portions.flatMap((ids) => jobsOf(ids));
  await enqueue(tx, { tenantId, kind: changedKind }, listed, nowMs);
}

/**
 * Called with entities that models have created or changed, in their transaction: enqueues jobs for the enabled updaters.
 * `wake` is called with the time at which they are due, once they are committed.
 */
export function changedEntities(nowMs: () => number, wake: (dueMs: number) => void) {
  return async (tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<void> => {
    if (!(await anyEnabled(tx, tenantId))) return;
    const dueMs = nowMs() + gatherMs;
    await enqueue(tx, { tenantId, kind: changedKind }, jobsOf(Buffer.concat(ids), dueMs), nowMs());
    afterCommit(tx, () => wake(dueMs));
  };
}

/** Enqueues a job that runs updaters over all entities that they match, in the transaction that enables or changes them. */
export async function startUpdaters(tx: Db, tenantId: string, ids: readonly string[], nowMs: number): Promise<void> {
  const started = [...new Set(ids)].map((id) => ({ id, payload: {} }));
  await enqueue(tx, { tenantId, kind: startedKind }, started, nowMs);
}

const clauseOf = (stored: JsonValue) => toQuery(stored).clause as Clause;

/** The jobs of updaters, for the worker. @param fieldsMax how many names of fields of a tenant are known */
export function updaterKinds(fieldsMax = Infinity): JobKind[] {
  const ready = readyUpdaters();

  async function apply(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number): Promise<Again[]> {
    const listing = jobs.filter(listsEntities);
    const ids = listedIn(listing);
    const pace = transactionPace(tx, tenantId);
    const expected = await ready(tx, tenantId, pace);
    // Much work is done before the locks; what has changed meanwhile is done again.
    const early = ids.length * expected.length > evaluationsMax;
    const before = early ? await evaluate(await readLiving(tx, tenantId, ids), expected, pace) : undefined;
    // Keys come before entities in the order of locks (src/events/lock.ts).
    const keys = keysIn(expected.map(({ properties }) => properties));
    await noteKeys(tx, tenantId, { customProperty: keys }, fieldsMax);
    // First the locks, then the updaters: a change since then starts its updater, and that run waits for these locks.
    const entities = await lockEntities(tx, tenantId, ids);
    const updaters = await ready(tx, tenantId, pace);
    const since = [...keysIn(updaters.map(({ properties }) => properties))].filter((key) => !keys.has(key));
    if (since.length > 0) await noteKeys(tx, tenantId, { customProperty: since }, fieldsMax);
    const found = await evaluate(entities, updaters, pace, updaters === expected ? before : undefined);
    await writeCustomProperties(tx, tenantId, found.changes, nowMs);
    await listParts(
      tx,
      tenantId,
      jobs.filter((job) => !listsEntities(job)),
      nowMs,
    );
    // As many jobs as these entities need go on with what was not reached.
    const rest = jobsOf(Buffer.concat(found.left));
    return rest.map(({ payload }, i) => ({ id: (listing[i] as Job).id, payload, dueMs: nowMs }));
  }

  async function start(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number) {
    if (await hasWaiting(tx, { tenantId, kind: matchedKind }, matchedMax)) {
      return jobs.map(({ id, payload }) => ({ id, payload, dueMs: nowMs + postponeMs }));
    }
    const resolver = updaterResolver(tenantId, await tenantNameOf(tx, tenantId));
    for (const { id } of jobs) {
      const [row] = await orm(tx)
        .select({ entityInput: propertyUpdaters.entityInput })
        .from(propertyUpdaters)
        .where(and(eq(propertyUpdaters.tenantId, tenantId), eq(propertyUpdaters.id, id), propertyUpdaters.enabled));
      if (row === undefined) continue;
      const matching = toMatching(tx, clauseOf(row.entityInput), "clause", resolver, "differ");
      const portions = await matchingIds(tx, tenantId, matching, portion);
      await enqueue(
        tx,
        { tenantId, kind: matchedKind },
        portions.flatMap((ids) => jobsOf(ids)),
        nowMs,
      );
    }
    return [];
  }

  return [
    { name: changedKind, sizeMax: 3 * portion, alone: true, run: apply },
    { name: startedKind, sizeMax: 1, run: start },
    { name: matchedKind, sizeMax: portion, alone: true, run: apply },
  ];
}
