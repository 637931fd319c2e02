import type { Pool } from "../db/connect.ts";
import type { Listener } from "../db/listen.ts";
import { leadership } from "./leader.ts";
import { backlogs } from "./queue.ts";
import { type Worker, type WorkerOptions, worker } from "./worker.ts";

const channel = "belfry_jobs";
const reportMs = 60_000;

/**
 * Starts this process's part of the background work: a worker that other replicas can wake, and, where this process
 * leads, a line in the log each minute that says how much work there is and how old it is.
 */
export function startJobs(
  pool: Pick<Pool, "system" | "background" | "counts" | "gate">,
  replicas: Pick<Listener, "listen">,
  options: Pick<WorkerOptions, "kinds" | "nowMs" | "log" | "busy" | "leaseMs">,
): Worker {
  const { system } = pool;
  const { nowMs, log } = options;
  const callOthers = () => void system.unsafe(`notify ${channel}`).catch(() => undefined);
  const work = worker(pool, { ...options, callOthers });
  replicas.listen(channel, () => work.wake());
  const reports = leadership(system, "jobs.report");

  async function report() {
    if (!reports.held()) return;
    for (const { kind, ...backlog } of await backlogs(pool.background, nowMs())) log.info({ kind, ...backlog }, "jobs");
  }
  const timer = setInterval(() => void report().catch(() => undefined), reportMs).unref();

  return {
    wake: work.wake,
    async stop() {
      clearInterval(timer);
      await Promise.all([reports.stop(), work.stop()]);
    },
  };
}
