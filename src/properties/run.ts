import type { JsonValue } from "@bufbuild/protobuf";
import { and, eq } from "drizzle-orm";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { toSql } from "../clause/to-sql.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { afterCommit } from "../db/transaction.ts";
import { lockEntities, writeCustomProperties } from "../entities/custom-properties.ts";
import { keysIn, noteKeys } from "../entities/field-keys.ts";
import { ID_BYTES } from "../entities/identity.ts";
import { matchingIds, splitIds } from "../entities/portions.ts";
import { type Again, enqueue, type Job, type NewJob } from "../jobs/queue.ts";
import type { JobKind } from "../jobs/worker.ts";
import { tenantNameOf } from "../tenants/tenant.ts";
import { evaluate, pairsMax, readEntities, transactionPace } from "./evaluate.ts";
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
/** Entities a job; a run takes one or three: few enough that their locks are held for a short time. */
const portion = 100;

function jobsOf(ids: Buffer, dueMs?: number): NewJob[] {
  const found: NewJob[] = [];
  for (let at = 0; at < ids.byteLength; at += portion * ID_BYTES) {
    const part = ids.subarray(at, at + portion * ID_BYTES);
    const size = part.byteLength / ID_BYTES;
    found.push({ payload: { ids: part.toString("base64") }, size, ...(dueMs !== undefined && { dueMs }) });
  }
  return found;
}

const idsOf = (jobs: readonly Job[]) => {
  const bytes = jobs.map(({ payload }) => Buffer.from((payload as { ids: string }).ids, "base64"));
  const distinct = new Set(bytes.flatMap((each) => splitIds(each).map((id) => id.toString("latin1"))));
  return [...distinct].map((text) => Buffer.from(text, "latin1"));
};

/** Leaves entities that the time did not suffice for to as many of their jobs as are needed. */
function againOf(jobs: readonly Job[], left: readonly Buffer[], nowMs: number): Again[] {
  const parts = jobsOf(Buffer.concat(left));
  return parts.map(({ payload }, i) => ({ id: (jobs[i] as Job).id, payload, dueMs: nowMs }));
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

  async function apply(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number) {
    const ids = idsOf(jobs);
    const pace = transactionPace(tx, tenantId);
    const expected = await ready(tx, tenantId, pace);
    // Much work is done before the locks; what has changed meanwhile is done again.
    const early = ids.length * expected.length > pairsMax;
    const before = early ? await evaluate(await readEntities(tx, tenantId, ids), expected, pace) : undefined;
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
    return againOf(jobs, found.left, nowMs);
  }

  async function start(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number) {
    const resolver = updaterResolver(tenantId, await tenantNameOf(tx, tenantId));
    for (const { id } of jobs) {
      const [row] = await orm(tx)
        .select({ entityInput: propertyUpdaters.entityInput })
        .from(propertyUpdaters)
        .where(and(eq(propertyUpdaters.tenantId, tenantId), eq(propertyUpdaters.id, id), propertyUpdaters.enabled));
      if (row === undefined) continue;
      const matching = toSql(tx, clauseOf(row.entityInput), "clause", resolver);
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

  // Models come first: what they change may wait a little, what an updater matches when it is started longer.
  return [
    { name: changedKind, sizeMax: 3 * portion, share: 1, busyShare: 0.4, patienceMs: 30_000, run: apply },
    { name: startedKind, sizeMax: 1, share: 1, run: start },
    { name: matchedKind, sizeMax: portion, share: 0.5, busyShare: 0.12, run: apply },
  ];
}
