const grpcUnitsMs: Record<string, number> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000001 };

function timeoutMs(text: string, grpc: boolean) {
  if (!grpc) return /^\d{1,10}$/.test(text) ? Number(text) : undefined;
  const unitMs = /^\d{1,8}[HMSmun]$/.test(text) ? grpcUnitsMs[text.slice(-1)] : undefined;
  return unitMs === undefined ? undefined : Number(text.slice(0, -1)) * unitMs;
}

/**
 * Bounds the deadline that the headers of a unary call ask for: longer ones, and none, become `deadlineMsMax`; what has
 * passed of it, `spentMs`, is taken off. A malformed one stays, so that the protocol refuses it.
 */
export function boundDeadline(header: Headers, grpc: boolean, deadlineMsMax: number, spentMs: number): void {
  const name = grpc ? "grpc-timeout" : "connect-timeout-ms";
  const text = header.get(name);
  const askedMs = text === null ? deadlineMsMax : timeoutMs(text, grpc);
  if (askedMs === undefined || (text !== null && askedMs <= deadlineMsMax && spentMs < 1)) return;
  const leftMs = Math.max(0, Math.ceil(Math.min(askedMs, deadlineMsMax) - spentMs));
  header.set(name, grpc ? `${leftMs}m` : String(leftMs));
}

/**
 * The promise's outcome, or the signal's reason when it aborts first (deadline, client gone, server stopping), so that
 * an answer never waits for a handler that does not listen.
 */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    const settled =
      <V>(settle: (value: V) => void) =>
      (value: V) => {
        signal.removeEventListener("abort", abort);
        settle(value);
      };
    promise.then(settled(resolve), settled(reject));
  });
}
