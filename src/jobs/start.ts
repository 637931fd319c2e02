import type { Pool } from "../db/connect.ts";
import type { NotifyListener } from "../db/listen.ts";
import { every } from "../every.ts";
import { type Backlog, backlogs } from "./due-lanes.ts";
import { leadership } from "./leader.ts";
import { otherServers } from "./wake-ups.ts";
import { type Worker, type WorkerOptions, worker } from "./worker.ts";

const channel = "belfry_jobs";
const reportMs = 60_000;

/** This process's part of the background work. */
export interface Jobs extends Worker {
  /** What waits, by kind, as it was counted last; empty where another process leads. */
  backlogs(): readonly Backlog[];
}

/**
 * Starts this process's part of the background work: a worker that other replicas can wake, and, where this process
 * leads, a line in the log each minute that says how much work there is and how old it is.
 */
export function startJobs(
  pool: Pick<Pool, "system" | "background" | "workers" | "counts" | "gate">,
  replicas: Pick<NotifyListener, "listen">,
  options: Pick<WorkerOptions, "kinds" | "nowMs" | "log" | "leaseMs">,
): Jobs {
  const { system } = pool;
  const { nowMs, log } = options;
  const callOthers = otherServers(pool, replicas, channel, () => work.wake());
  const work = worker(pool, { ...options, callOthers });
  const reports = leadership(system, "jobs.report");

  let last: readonly Backlog[] = [];
  async function report() {
    last = [];
    if (!reports.held()) return;
    last = await backlogs(pool, nowMs());
    for (const { kind, ...backlog } of last) log.info({ kind, ...backlog }, "jobs");
  }
  const rounds = every(reportMs, report);

  return {
    wake: work.wake,
    stats: work.stats,
    backlogs: () => last,
    async stop() {
      await Promise.all([rounds.stop(), reports.stop(), work.stop()]);
    },
  };
}
