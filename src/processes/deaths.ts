const withinMs = 600_000;
const freely = 5;
const pauseMs = 1000;
const pauseMsMax = 60_000;

/**
 * Counts the deaths of processes that had served. The first is followed by a start at once, the next ones after a pause that doubles; from the
 * fifth within ten minutes on a start comes a minute after the death, without end: an unattended server must come back.
 */
export function recentDeaths() {
  const timesMs: number[] = [];
  return {
    /** Counts a death; returns how many there were within ten minutes, and how long the next start waits. */
    note(nowMs: number): { count: number; waitMs: number } {
      timesMs.push(nowMs);
      while (nowMs - (timesMs[0] ?? nowMs) > withinMs) timesMs.shift();
      const count = timesMs.length;
      if (count >= freely) return { count, waitMs: pauseMsMax };
      return { count, waitMs: count === 1 ? 0 : pauseMs * 2 ** (count - 2) };
    },
  };
}
