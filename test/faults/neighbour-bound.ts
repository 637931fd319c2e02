const sampleMs = 300;
const burnUs = 4000;

/**
 * How long a neighbour may wait, ms: a second, as the contract says, and longer where other programs have the machine. What
 * the server, its database and the test need of two processors is not more than three times what there is.
 */
export function neighbourBound(): () => number {
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
    return stretch > 3 ? 1000 * stretch : 1000;
  };
}
