import type { JsonValue } from "@bufbuild/protobuf";
import { and, eq } from "drizzle-orm";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { toSql } from "../clause/to-sql.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { afterCommit } from "../db/transaction.ts";
import { matchingIds } from "../entities/batched-writes.ts";
import { lockEntities, writeCustomProperties } from "../entities/custom-properties.ts";
import { keysIn, noteKeys } from "../entities/field-keys.ts";
import { readEntities } from "../entities/unlocked-names.ts";
import { enqueue, hasWaiting, type Job } from "../jobs/queue.ts";
import type { JobKind } from "../jobs/worker.ts";
import { tenantNameOf } from "../tenants/tenant.ts";
import { entitiesOf, jobsOf, partJobsOf, portion } from "./entity-jobs.ts";
import { evaluate, pairsMax, transactionPace } from "./evaluate.ts";
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
/** Of what models change this many jobs may wait; then what they change further is noted by parts of the tenant's entities. */
const changedMax = 5000;

/**
 * Called with entities that models have created or changed, in their transaction: enqueues jobs for the enabled updaters.
 * `wake` is called with the time at which they are due, once they are committed.
 */
export function changedEntities(nowMs: () => number, wake: (dueMs: number) => void) {
  return async (tx: Db, tenantId: string, ids: readonly Buffer[]): Promise<void> => {
    if (!(await anyEnabled(tx, tenantId))) return;
    const dueMs = nowMs() + gatherMs;
    const crowded = await hasWaiting(tx, { tenantId, kind: changedKind }, changedMax);
    const changed = crowded ? partJobsOf(ids, dueMs) : jobsOf(Buffer.concat(ids), dueMs);
    await enqueue(tx, { tenantId, kind: changedKind }, changed, nowMs());
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
    const { ids, left } = await entitiesOf(tx, tenantId, jobs);
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
    return left(found.left, nowMs);
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

  return [
    { name: changedKind, sizeMax: 3 * portion, alone: true, run: apply },
    { name: startedKind, sizeMax: 1, run: start },
    { name: matchedKind, sizeMax: portion, alone: true, run: apply },
  ];
}
