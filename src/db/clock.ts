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
const stepMs = 1000;

/** Starts a clock; the database must answer once. Later it is asked every 10 s, and kept as it was when it is away. */
export async function databaseClock(db: Db): Promise<Clock> {
  let offsetMs = 0;
  let lastMs = 0;

  async function refresh() {
    // The fastest of three: half of its round trip is the error.
    let best = Infinity;
    for (let i = 0; i < 3; i++) {
      const before = performance.now();
      const [row] = await db<{ ms: number }[]>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
      const after = performance.now();
      if (after - before >= best) continue;
      best = after - before;
      offsetMs = (row?.ms as number) - (before + after) / 2;
    }
    if (Math.floor(performance.now() + offsetMs) < lastMs - stepMs) lastMs = 0;
  }

  await refresh();
  const timer = setInterval(() => void refresh().catch(() => undefined), refreshMs).unref();
  return {
    nowMs() {
      lastMs = Math.max(lastMs, Math.floor(performance.now() + offsetMs));
      return lastMs;
    },
    refresh,
    stop: () => clearInterval(timer),
  };
}
