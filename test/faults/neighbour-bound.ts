import { heavy } from "../support/part.ts";

const sampleMs = 300;
const burnUs = 4000;
/** The server, its database and the test share two processors: by themselves they stretch work up to threefold. */
const ownStretch = 3;
/** Beside other test files nothing is measured. */
const hangMs = 30_000;

/**
 * How long a neighbour may wait, ms: a second, or as the contract says. Where other programs have the machine it is longer by as
 * much as they stretch work: by the time that 4 ms of processor time take this thread, on average, beyond three times as long.
 */
export function neighbourBound(contractMs = 1000): () => number {
  if (!heavy) return () => hangMs;
  let wallMs = 0;
  let processorMs = 0;
  const timer = setInterval(() => {
    const startMs = performance.now();
    const before = process.threadCpuUsage();
    let usedUs = 0;
    while (usedUs < burnUs) {
      const { user, system } = process.threadCpuUsage(before);
      usedUs = user + system;
    }
    wallMs += performance.now() - startMs;
    processorMs += usedUs / 1000;
  }, sampleMs);
  return () => {
    clearInterval(timer);
    const stretch = processorMs === 0 ? 1 : wallMs / processorMs;
    return contractMs * Math.max(1, stretch / ownStretch);
  };
}
