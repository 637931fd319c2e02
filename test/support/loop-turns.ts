/** How long turns of this process's event loop take, in processor time: what other processes take does not count. */
export interface LoopTurns {
  /** The longest turn since the start, ms. */
  stop(): number;
}

/** Begins to measure; turns within a millisecond count as one, so that the measuring itself takes little. */
export function loopTurns(): LoopTurns {
  let longestMs = 0;
  let going = true;
  let before = process.threadCpuUsage();
  function turn() {
    const { user, system } = process.threadCpuUsage(before);
    longestMs = Math.max(longestMs, (user + system) / 1000);
    before = process.threadCpuUsage();
    if (going) setTimeout(turn, 1);
  }
  setTimeout(turn, 1);
  return {
    stop() {
      going = false;
      return longestMs;
    },
  };
}
