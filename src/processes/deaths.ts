const within = { ms: 600_000, text: "ten minutes" };
const max = 5;
const pauseMs = 1000;

/** What follows from a death. */
interface Consequence {
  /** How many there were lately, with this one. */
  readonly count: number;
  /** How long the next start waits: not at all after a single death. */
  readonly waitMs: number;
  /** Why there is no next start. */
  readonly tooMany: string | undefined;
}

/** Counts the deaths of serving processes: five of them within ten minutes are too many. */
export function recentDeaths() {
  const timesMs: number[] = [];
  return {
    note(nowMs: number): Consequence {
      timesMs.push(nowMs);
      while (nowMs - (timesMs[0] ?? nowMs) > within.ms) timesMs.shift();
      const count = timesMs.length;
      const waitMs = count === 1 ? 0 : pauseMs * 2 ** (count - 2);
      const tooMany = count < max ? undefined : `${count} serving processes have died within ${within.text}`;
      return { count, waitMs, tooMany };
    },
  };
}
