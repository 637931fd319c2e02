import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { Db, Pool } from "../db/connect.ts";
import { isConnectionLost } from "../db/driver/connection-errors.ts";
import { withHolder } from "../db/request-scope.ts";
import { transaction } from "../db/transaction.ts";
import { stepsOwedMs } from "../event-loop.ts";
import { failpoint } from "../failpoint.ts";
import { type Histogram, histogram } from "../histogram.ts";
import type { Log } from "../log.ts";
import { dueLanes } from "./due-lanes.ts";
import { leaseKeeper } from "./leases.ts";
import {
  type Again,
  claim,
  finishJobs,
  giveBackJobs,
  type Job,
  type Lane,
  LeaseLost,
  renew,
  settleJobs,
} from "./queue.ts";
import { alarms } from "./wake-ups.ts";

/** One kind of jobs, and what is done for them. */
export interface JobKind {
  name: string;
  /** How much one run takes, in the unit of its jobs' sizes; at least one job. */
  sizeMax: number;
  /** One run at a time in a process, of all tenants: its work is heavy. */
  alone?: boolean;
  /** Its jobs are due at a time that users chose: a place is kept for them while others run. */
  timed?: boolean;
  /** How long a claim of its jobs lasts that is not renewed; absent: as long as the worker's others. */
  leaseMs?: number;
  /**
   * Does the jobs, in the transaction that ends them: all of it happens, once, or none. What may be repeated is the call
   * itself. Returns the jobs that are to be done again at another time. One that goes on to lock what comes after due_work
   * calls `finish` with them before it does.
   */
  run(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number, finish?: Finish): Promise<readonly Again[]>;
}

/** Ends the jobs of a run, in its transaction; those that are to be done again wait for their time. */
export type Finish = (again: readonly Again[]) => Promise<void>;

export interface WorkerOptions {
  kinds: readonly JobKind[];
  nowMs(): number;
  log: Log;
  /** Notified that there is more to do than this process takes on. */
  callOthers?(): void;
  /** How many runs go on at once: no more than there are connections for them. */
  runsMax?: number;
  /** How long a claim lasts that is not renewed, as one of a process that has died. */
  leaseMs?: number;
  /** How often it looks although nothing called it. */
  pollMs?: number;
}

/** What this process has done of one kind of jobs. */
export interface JobStats {
  /** Runs that have ended, and how long each took, s. */
  readonly runSec: Histogram;
  /** Jobs that were done. */
  jobs: number;
  /** Runs that have failed. */
  failed: number;
  running: number;
}

/** Does the jobs of all tenants, in turns. */
export interface Worker {
  /** There is work, or will be at this time. A hint: what is due is found without it, too. */
  wake(dueMs?: number): void;
  /** By kind: what was done since the start, and the runs of now. */
  stats(): Map<string, JobStats>;
  /** Claims nothing more; resolves when the runs in work have ended, at the latest after 5 s. */
  stop(): Promise<void>;
}

const keyOf = ({ tenantId, kind }: Lane) => `${tenantId} ${kind}`;
const servedMax = 10_000;
const fewLanes = 100;
const staleMs = 200;
const emptyRestMs = 50;
const stopMsMax = 5000;

/** Starts a worker. Runs that fail are tried again, later and later; the log says so. */
export function worker(
  { system, workers, background, counts, gate }: Pick<Pool, "system" | "workers" | "background" | "counts" | "gate">,
  options: WorkerOptions,
): Worker {
  const {
    kinds,
    nowMs,
    log,
    callOthers = () => {},
    runsMax = counts.background,
    leaseMs: usualLeaseMs = 10_000,
    pollMs = 1000,
  } = options;
  const byName = new Map(kinds.map((kind) => [kind.name, kind]));
  const names = [...byName.keys()];
  const stats = new Map(
    names.map((name): [string, JobStats] => [name, { runSec: histogram(), jobs: 0, failed: 0, running: 0 }]),
  );
  /** The lanes that are served, and the kinds that run alone. */
  const serving = new Set<string>();
  // Turns are kept in memory: they are a matter of fairness, not of safety.
  const servedAt = new LRUCache<string, number>({ max: servedMax });
  const restsUntilMs = new Map<string, number>();
  let served = 0;
  const runs = new Set<Promise<void>>();
  const timed = new Set(kinds.filter((kind) => kind.timed).map(({ name }) => name));
  /** How many runs of kinds that are not timed may go on at once, and do. */
  const othersMax = timed.size > 0 ? Math.max(1, runsMax - 1) : runsMax;
  let others = 0;
  let lanes: Awaited<ReturnType<typeof dueLanes>> = [];
  let readMs = -Infinity;
  let looking = false;
  let again = false;
  let stopped = false;
  const alarm = alarms<"look">(nowMs, () => void look());
  const lookAt = (dueMs: number) => alarm.set("look", dueMs);
  const leaseMsOf = (name: string) => byName.get(name)?.leaseMs ?? usualLeaseMs;
  const claimed = jobLeases(system, { leaseMsOf, leaseMsMin: Math.min(usualLeaseMs, ...names.map(leaseMsOf)), nowMs });

  async function look() {
    if (looking || stopped) {
      again = true;
      return;
    }
    looking = true;
    do {
      again = false;
      alarm.clear("look");
      lookAt(nowMs() + pollMs);
      try {
        if (gate.open) await begin();
      } catch (error) {
        if (!isConnectionLost(error))
          log.error({ cause: (error as Error).message }, "the queue of jobs cannot be read");
      }
    } while (again && !stopped);
    looking = false;
  }

  /** Those served least recently first: tenant before tenant, then kind before kind. */
  function inTurn<T extends Lane>(due: readonly T[]): T[] {
    const at = (key: string) => servedAt.get(key) ?? 0;
    return [...due].sort((a, b) => at(a.tenantId) - at(b.tenantId) || at(keyOf(a)) - at(keyOf(b)));
  }

  /** Begins runs for lanes that are due, as many as there is room for. */
  async function begin() {
    // A long list is read again now and then only: which lane has its turn does not depend on it.
    const fresh = lanes.length < fewLanes || performance.now() - readMs > staleMs;
    if (fresh) {
      lanes = await dueLanes({ system, workers }, names, nowMs() + pollMs);
      readMs = performance.now();
    } else lookAt(nowMs() + staleMs);
    const now = nowMs();
    for (const { dueMs } of lanes) if (dueMs > now) lookAt(dueMs);
    for (const lane of inTurn(lanes.filter(({ dueMs }) => dueMs <= now))) {
      if (stopped) return;
      const emptyMs = (restsUntilMs.get(keyOf(lane)) ?? 0) - performance.now();
      if (emptyMs <= 0) restsUntilMs.delete(keyOf(lane));
      // The comparisons of its jobs wait for the tenant's share here: within a transaction they would keep others waiting.
      const restMs = Math.max(emptyMs, stepsOwedMs(lane.tenantId));
      if (serving.has(keyOf(lane)) || serving.has(lane.kind)) continue;
      if (restMs > 0) {
        lookAt(now + restMs);
      } else if (runs.size < runsMax && (timed.has(lane.kind) || others < othersMax)) {
        const counts = timed.has(lane.kind) ? 0 : 1;
        others += counts;
        const run = withHolder({ tenant: lane.tenantId }, () => serve(lane, byName.get(lane.kind) as JobKind));
        runs.add(run);
        void run.finally(() => {
          runs.delete(run);
          others -= counts;
          void look();
        });
      } else callOthers();
    }
  }

  /** One run of a lane. Never rejects. */
  async function serve(lane: Lane, kind: JobKind): Promise<void> {
    const key = keyOf(lane);
    const busy = kind.alone ? [key, lane.kind] : [key];
    for (const each of [lane.tenantId, key]) servedAt.set(each, ++served);
    for (const each of busy) serving.add(each);
    try {
      const startMs = performance.now();
      const jobs = await claim(system, lane, {
        sizeMax: kind.sizeMax,
        leaseMs: leaseMsOf(kind.name),
        nowMs: nowMs(),
      });
      claimed.begin(lane, jobs, startMs);
      if (jobs.length === 0) await settleJobs(system, lane, nowMs());
      else {
        const run = { kind, jobs, counted: stats.get(kind.name) as JobStats };
        await runJobs({ system, background }, lane, run, { nowMs, log }).finally(() => claimed.end(jobs));
      }
      // Where nothing was found, a transaction that adds to the lane keeps it from being settled.
      if (jobs.length === 0) restsUntilMs.set(key, performance.now() + emptyRestMs);
    } catch (error) {
      if (!isConnectionLost(error))
        log.error({ kind: lane.kind, cause: (error as Error).message }, "jobs cannot be claimed");
      restsUntilMs.set(key, performance.now() + pollMs);
    } finally {
      for (const each of busy) serving.delete(each);
    }
  }

  void look();
  return {
    wake: (dueMs) => (dueMs === undefined ? void look() : lookAt(dueMs)),
    stats: () => stats,
    async stop() {
      stopped = true;
      alarm.stop();
      const late = new AbortController();
      const { signal } = late;
      await Promise.race([Promise.all(runs), sleep(stopMsMax, undefined, { signal }).catch(() => undefined)]);
      late.abort();
      claimed.stop();
    },
  };
}

/** One run of claimed jobs, in a transaction that also ends them; those of a failed run are tried again later. */
async function runJobs(
  { system, background }: Pick<Pool, "system" | "background">,
  lane: Lane,
  { kind, jobs, counted }: { kind: JobKind; jobs: readonly Job[]; counted: JobStats },
  { nowMs, log }: Pick<WorkerOptions, "nowMs" | "log">,
): Promise<void> {
  const startMs = performance.now();
  counted.running += 1;
  try {
    failpoint("jobs:claimed");
    await transaction(background, async (tx) => {
      let finished: Promise<void> | undefined;
      const finish = (again: readonly Again[]) => (finished ??= finishJobs(tx, lane, jobs, again));
      const next = await kind.run(tx, lane.tenantId, jobs, nowMs(), finish);
      failpoint("jobs:run");
      await finish(next);
    });
    failpoint("jobs:finished");
    counted.jobs += jobs.length;
  } catch (error) {
    // Without the database, or without the lease, nothing can be recorded; the jobs are claimed again when the lease ends.
    if (isConnectionLost(error) || error instanceof LeaseLost) return;
    counted.failed += 1;
    const failures = Math.max(...jobs.map((job) => job.failures)) + 1;
    const { message, code } = error as Error & { code?: unknown };
    log.warn(
      { kind: lane.kind, tenant: lane.tenantId, jobs: jobs.length, failures, state: code, cause: message },
      "jobs have failed and are tried again",
    );
    await giveBackJobs(system, lane, jobs, nowMs() + retryDelayMs(failures), true);
  } finally {
    counted.running -= 1;
    counted.runSec.note((performance.now() - startMs) / 1000);
  }
}

/** Keeps jobs claimed while they run. */
function jobLeases(
  db: Db,
  { leaseMsOf, leaseMsMin, nowMs }: { leaseMsOf(kind: string): number; leaseMsMin: number; nowMs(): number },
) {
  // One at a time: it waits where the run itself has locked its jobs.
  const renewing = new Set<Lane>();
  return leaseKeeper<Lane, Job>({
    leaseMs: ({ kind }) => leaseMsOf(kind),
    leaseMsMin,
    async renew(lane, jobs) {
      if (renewing.has(lane)) return () => true;
      renewing.add(lane);
      try {
        await withHolder({ tenant: lane.tenantId }, () =>
          renew(db, lane, jobs, { leaseMs: leaseMsOf(lane.kind), nowMs: nowMs() }),
        );
      } finally {
        renewing.delete(lane);
      }
      return () => true; // a run whose jobs are another's by then fails at its end
    },
  });
}

const retryFirstMs = 1000;
const retryMsMax = 60_000;

/** How long a job waits after this many failures in a row, ms: 1 s, doubling to a minute, up to a fifth more or less. */
export function retryDelayMs(failures: number): number {
  const delayMs = Math.min(retryFirstMs * 2 ** Math.min(failures - 1, 16), retryMsMax);
  return Math.round(delayMs * (0.8 + 0.4 * Math.random()));
}
