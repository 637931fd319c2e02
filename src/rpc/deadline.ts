import { timeoutOf } from "../wire/call.ts";

/** When a unary call ends. */
export interface Deadline {
  /** What is left of its time, ms; 0 when it is over. */
  leftMs(): number;
  /** Writes what is left into the headers of the call, for the handler that comes next. */
  write(header: Headers): void;
}

/**
 * The deadline that the headers of a unary call ask for: longer ones, and none, become `deadlineMsMax`.
 * @throws code 3 for a malformed one
 */
export function deadlineOf(header: Headers, grpc: boolean, deadlineMsMax: number): Deadline {
  const name = grpc ? "grpc-timeout" : "connect-timeout-ms";
  const asked = header.get(name);
  const timeoutMs = (asked === null ? undefined : timeoutOf({ [name]: asked }, deadlineMsMax)) ?? deadlineMsMax;
  const endMs = performance.now() + timeoutMs;
  const leftMs = () => Math.max(0, endMs - performance.now());
  return {
    leftMs,
    write: (header) => header.set(name, `${Math.ceil(leftMs())}${grpc ? "m" : ""}`),
  };
}

/**
 * The promise's outcome, or the signal's reason when it aborts first (deadline, client gone, server stopping), so that
 * an answer never waits for a handler that does not listen.
 */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    // Also of an outcome that comes too late a rejection is taken: one that nothing takes ends the process.
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    const settled =
      <V>(settle: (value: V) => void) =>
      (value: V) => {
        signal.removeEventListener("abort", abort);
        settle(value);
      };
    promise.then(settled(resolve), settled(reject));
  });
}
