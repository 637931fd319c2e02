/** The longest turn that may be, ms of the processor. */
export const turnMsMax = 250;

/** A turn of the event loop. */
export interface Turn {
  /** The processor time that it took: what other processes take does not count, ms. */
  ms: number;
  /** When it ended, ms since the epoch. */
  endedMs: number;
}

/** The turns of this process's event loop. */
export interface LoopTurns {
  /** The longest turn since the last call, or since the start. */
  longest(): Turn;
  stop(): void;
}

const none: Turn = { ms: 0, endedMs: 0 };

/** Begins to measure; turns within a millisecond count as one, so that the measuring itself takes little. */
export function loopTurns(): LoopTurns {
  let longest = none;
  let before = process.threadCpuUsage();
  let timer = setTimeout(turn, 1).unref();
  function turn() {
    const { user, system } = process.threadCpuUsage(before);
    const ms = (user + system) / 1000;
    if (ms > longest.ms) longest = { ms, endedMs: performance.timeOrigin + performance.now() };
    before = process.threadCpuUsage();
    timer = setTimeout(turn, 1).unref();
  }
  return {
    longest() {
      const found = longest;
      longest = none;
      return found;
    },
    stop: () => clearTimeout(timer),
  };
}
