import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db, Sql } from "../../db/connect.ts";
import { withHolder } from "../../db/request-scope.ts";
import { stepsOwedMs } from "../../event-loop.ts";
import { histogram, secondsBounds } from "../../histogram.ts";
import { type Job, lockJob } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import type { Log } from "../../log.ts";
import { type FeedRow, isRepeats } from "../feed.ts";
import { backlog } from "./backlog.ts";
import type { ConsumerStats, Consuming, Slice } from "./consume-next.ts";
import { consumeOrRetry, factsMax, type RetriedFeed } from "./consume-or-retry.ts";
import { type Consumer, feedJob, feedKind } from "./consumer.ts";
import { type Behind, behindSinceMs } from "./cursors.ts";
import { asideJob } from "./set-aside.ts";

/** A consumer at work in this process. */
export interface FeedConsumer extends Pick<Consumer, "name" | "wants"> {
  /** Takes rows that this process has just stored. */
  stored(tenantId: string, rows: readonly FeedRow[]): void;
  /** Consumes what there is of a tenant, unless another does; resolves when it is at the end of the feed, or another is at work. */
  consume(tenantId: string): Promise<"end" | "busy">;
  /** Before data of a tenant are taken. @throws code 8 while too much waits to be consumed */
  check(tenantId: string): void;
  readonly kinds: readonly JobKind[];
  stats(): ConsumerStats;
  /** After the last data were stored: consumes what this process has stored, for some seconds. What is left another process finds, or the next start. */
  stop(): Promise<void>;
}

interface Options {
  nowMs(): number;
  /** How many tenants are served at once. */
  atOnce?: number;
  log?: Pick<Log, "error">;
  /** Whether a server of 0.3 may read what is set aside. Absent: none. */
  oldForm?(): boolean;
  /** How much of a tenant may wait; beyond it further data of this tenant are refused. */
  waitingMax?: Behind;
}

/** Rows and facts of a tenant that wait in memory; beyond them they are read from the feed. */
const keptRowsMax = 100;
const keptFactsMax = 5000;
/** Another transaction is at work on the tenant: this one looks again after this time, ms, later and later. */
const busyMs = 4;
const busyMsMax = 100;
/** Repeats wait this long for others, ms: one transaction shows them all. */
const repeatsMs = 100;
/** So many rows are not waited for. */
const repeatsMax = 50;
const stopMsMax = 5000;
const stopLookMs = 20;
/** A job's run works on a tenant for this long, ms. */
const runMs = 2000;

interface Tenant extends RetriedFeed {
  serving: boolean;
  /** Of a turn that comes later. */
  timer: NodeJS.Timeout | undefined;
  busyMs: number;
}

const newTenant = (): Tenant => ({
  rows: [],
  shown: undefined,
  serving: false,
  timer: undefined,
  factsMax,
  failing: undefined,
  busyMs,
});

/** Starts a consumer. Each tenant is served by one transaction at a time of all servers, in the order of its feed. */
export function feedConsumer(db: Sql, consumer: Consumer, options: Options): FeedConsumer {
  const { name } = consumer;
  const { nowMs, atOnce = 1, log, oldForm, waitingMax = { facts: 50_000, bytes: 128 * 1024 * 1024 } } = options;
  const stats: ConsumerStats = { facts: 0, setAside: 0, lateSec: histogram([...secondsBounds, 60, 300, 1800]) };
  const turns = tenantTurns({ db, consumer, stats, log, nowMs, ...(oldForm && { oldForm }) }, atOnce);
  const waiting = backlog(db, name, waitingMax);
  return {
    name,
    wants: consumer.wants,
    stored(tenantId, rows) {
      if (turns.stored(tenantId, rows) > 1) waiting.grew(tenantId);
    },
    async consume(tenantId) {
      const came = await turns.work(tenantId, () => true);
      return came === "more" ? "busy" : came;
    },
    check: waiting.check,
    kinds: [leftFeedJob(name, turns.work), asideJob(consumer)],
    stats: () => stats,
    stop: turns.stop,
  };
}

/** Consumes what a process that has died, or is slow, has left. */
function leftFeedJob(name: string, work: ReturnType<typeof tenantTurns>["work"]): JobKind {
  async function run(tx: Db, tenantId: string, [job]: readonly Job[], now: number) {
    if (job === undefined) return [];
    const again = (dueMs: number) => [{ id: job.id, payload: job.payload, dueMs }];
    const untilMs = performance.now() + runMs;
    const came = await work(tenantId, () => performance.now() < untilMs);
    if (came === "busy") return again(now + busyMsMax);
    // Whoever has seen this job is committed; who comes later waits for this transaction, and leaves another one.
    await lockJob(tx, { tenantId, kind: feedKind(name) }, feedJob);
    return (await behindSinceMs(tx, tenantId, name)) === Infinity ? [] : again(now);
  }
  return { name: feedKind(name), sizeMax: 1, run };
}

/** Lets tenants take turns, `atOnce` of them at a time; what a turn fails with is left to the job. */
function tenantTurns(consuming: Consuming, atOnce: number) {
  const tenants = new Map<string, Tenant>();
  /** Tenants that wait for their turn, in its order. */
  const ready = new Set<string>();
  const running = new Set<Promise<void>>();
  // Nothing of the call that stores may stay with what follows: neither its share of the database nor its deadline.
  const outside = AsyncLocalStorage.snapshot();
  let stopped = false;

  function tenantOf(tenantId: string): Tenant {
    const tenant = tenants.get(tenantId) ?? newTenant();
    tenants.set(tenantId, tenant);
    return tenant;
  }

  function serveNext(): void {
    for (const tenantId of ready) {
      if (stopped || running.size >= atOnce) return;
      const tenant = tenantOf(tenantId);
      if (tenant.serving) continue;
      ready.delete(tenantId);
      const owedMs = stepsOwedMs(tenantId);
      // Its comparisons wait for their share, outside of a transaction: others have its place.
      if (owedMs > 0) later(tenant, owedMs, () => serveSoon(tenantId));
      else {
        const turn = serve(tenantId, tenant).then(() => {
          running.delete(turn);
          serveNext();
        });
        running.add(turn);
      }
    }
  }

  function serveSoon(tenantId: string): void {
    ready.add(tenantId);
    outside(serveNext);
  }

  /** A tenant's turn: one transaction, more while nobody else waits. Never rejects. */
  async function serve(tenantId: string, tenant: Tenant): Promise<void> {
    cancelLater(tenant);
    try {
      const came = await work(consuming, tenantId, tenant, () => !stopped && ready.size === 0);
      if (came === "more") ready.add(tenantId);
      const isKept = came === "busy" && tenant.rows.length > 0;
      if (isKept) later(tenant, tenant.busyMs, () => serveSoon(tenantId));
      tenant.busyMs = isKept ? Math.min(busyMsMax, tenant.busyMs * 2) : busyMs;
    } catch {
      tenant.rows = [];
    }
    if (tenant.rows.length === 0 && tenant.failing === undefined && !ready.has(tenantId)) tenants.delete(tenantId);
  }

  return {
    /** Gives a tenant a turn for rows that were stored; returns how many of it wait. */
    stored(tenantId: string, rows: readonly FeedRow[]): number {
      const tenant = tenantOf(tenantId);
      const waiting = keep(tenant, rows);
      if (waiting === 0) return 0;
      if (waiting <= repeatsMax && rows.every(isRepeats)) later(tenant, repeatsMs, () => serveSoon(tenantId));
      else serveSoon(tenantId);
      return waiting;
    },
    work: (tenantId: string, mayGoOn: () => boolean) =>
      outside(() => work(consuming, tenantId, tenantOf(tenantId), mayGoOn)),
    async stop() {
      const lateMs = performance.now() + stopMsMax;
      for (const [tenantId, { rows }] of tenants) if (rows.length > 0) ready.add(tenantId);
      while (ready.size + running.size > 0 && performance.now() < lateMs) {
        serveNext();
        await Promise.race([...running, sleep(stopLookMs)]);
      }
      stopped = true;
      for (const tenant of tenants.values()) cancelLater(tenant);
      await Promise.all(running);
    },
  };
}

/** Sets off what a tenant does later, unless it has something set off already. */
function later(tenant: Tenant, ms: number, run: () => void): void {
  tenant.timer ??= setTimeout(() => {
    tenant.timer = undefined;
    run();
  }, ms).unref();
}

function cancelLater(tenant: Tenant): void {
  clearTimeout(tenant.timer);
  tenant.timer = undefined;
}

/** Keeps rows that were stored, unless they are too many; returns how many wait. */
function keep(tenant: Tenant, rows: readonly FeedRow[]): number {
  for (const { position, createdMs, facts } of rows) {
    if (facts !== undefined) tenant.rows.push({ position, createdMs: Number(createdMs), facts });
  }
  const count = tenant.rows.length;
  const kept = tenant.rows.reduce((sum, { facts }) => sum + facts.length, 0);
  if (count > keptRowsMax || kept > keptFactsMax) tenant.rows = tenant.rows.slice(-1);
  return count;
}

/** Runs transactions of a tenant, one after the other, until there is no more, or no more time. */
async function work(consuming: Consuming, tenantId: string, tenant: Tenant, mayGoOn: () => boolean): Promise<Slice> {
  if (tenant.serving) return "busy";
  tenant.serving = true;
  try {
    for (;;) {
      const came = await withHolder({ tenant: tenantId }, () => consumeOrRetry(consuming, tenantId, tenant));
      if (came !== "more" || !mayGoOn()) return came;
    }
  } finally {
    tenant.serving = false;
  }
}
