import { readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";

/** Nanoseconds that the main thread has run, and has waited for a processor. Only Linux says so. */
function scheduled(): { ran: number; waited: number } {
  try {
    const [ran = 0, waited = 0] = readFileSync("/proc/self/schedstat", "utf8").split(" ").map(Number);
    return { ran, waited };
  } catch {
    return { ran: 0, waited: 0 };
  }
}

/** Shorter work is counted as this long: a single wait would else stretch it many times. */
const workNsMin = 5e6;

/**
 * Begins to measure by how much other programs stretch the work of this thread, and of those that it waits for, such as PostgreSQL: 1 by
 * itself, 3 where three want each processor.
 */
export function stretch(): () => number {
  const before = scheduled();
  return () => {
    const now = scheduled();
    const own = 1 + (now.waited - before.waited) / Math.max(now.ran - before.ran, workNsMin);
    const [wanting = 0] = loadavg();
    return Math.max(own, wanting / availableParallelism());
  };
}

/**
 * Starts a clock for what a contract promises in time. It reads milliseconds as they would have been with the processors to
 * itself: on a machine that others use, time passes as much slower as they stretch its work.
 */
export function ownClock(): () => number {
  const startMs = performance.now();
  const stretched = stretch();
  return () => (performance.now() - startMs) / stretched();
}
