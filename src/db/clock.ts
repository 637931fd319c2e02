import { every } from "../every.ts";
import type { Db } from "./connect.ts";

/** The database's time, known without asking each time. Steps of this process's own clock do not move it. */
export interface Clock {
  /** Now in ms since the epoch, a whole number; it does not go back unless the database's clock does by over a second. */
  nowMs(): number;
  /** Asks the database again. */
  refresh(): Promise<void>;
  stop(): void;
}

const refreshMs = 10_000;
const samples = 3;
/** A sample that took longer says too little: half of its time is its error. */
const travelMsMax = 250;
const firstSamplesMax = 20;
const stepMs = 1000;

/**
 * Starts a clock, on connections that no call waits for; the database must answer once. Later it is asked every 10 s, and
 * kept as it was when the database is away or slow.
 */
export async function databaseClock(db: Db): Promise<Clock> {
  let offsetMs = 0;
  let lastMs = 0;

  let known = false;

  /** How far the database's clock is ahead of this process's steady one; half of the travel is the error. */
  async function sample() {
    const before = performance.now();
    const [row] = await db<{ ms: number }[]>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
    const after = performance.now();
    return { travelMs: after - before, aheadMs: (row?.ms as number) - (before + after) / 2 };
  }

  async function refresh() {
    let best = await sample();
    const slow = () => best.travelMs > travelMsMax;
    for (let i = 1; i < samples || (slow() && !known && i < firstSamplesMax); i++) {
      const next = await sample();
      if (next.travelMs < best.travelMs) best = next;
    }
    if (slow() && known) return;
    known = true;
    offsetMs = best.aheadMs;
    if (Math.floor(performance.now() + offsetMs) < lastMs - stepMs) lastMs = 0;
  }

  await refresh();
  const rounds = every(refreshMs, refresh);
  return {
    nowMs() {
      lastMs = Math.max(lastMs, Math.floor(performance.now() + offsetMs));
      return lastMs;
    },
    refresh,
    stop: () => void rounds.stop(),
  };
}
