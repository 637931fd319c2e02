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
