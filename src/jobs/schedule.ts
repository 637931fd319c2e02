const retryFirstMs = 1000;
const retryMsMax = 60_000;

/** How long a job waits after this many failures in a row, ms: 1 s, doubling to a minute, up to a fifth more or less. */
export function retryDelayMs(failures: number): number {
  const delayMs = Math.min(retryFirstMs * 2 ** Math.min(failures - 1, 16), retryMsMax);
  return Math.round(delayMs * (0.8 + 0.4 * Math.random()));
}
