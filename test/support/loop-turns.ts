/** How long turns of this process's event loop take, in processor time: what other processes take does not count. */
export interface LoopTurns {
  /** The longest turn since the start, ms. */
  stop(): number;
}

export function loopTurns(): LoopTurns {
  let longestMs = 0;
  let going = true;
  let before = process.threadCpuUsage();
  function turn() {
    const { user, system } = process.threadCpuUsage(before);
    longestMs = Math.max(longestMs, (user + system) / 1000);
    before = process.threadCpuUsage();
    if (going) setImmediate(turn);
  }
  setImmediate(turn);
  return {
    stop() {
      going = false;
      return longestMs;
    },
  };
}
