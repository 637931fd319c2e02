import { invalidField } from "../errors.ts";

/** A day in 1973, in ms. No time that is sent in ms lies before it; in seconds all do, until the year 5138. */
export const plausibleMs = 100_000_000_000n;

/** @throws code 3 for the end of a time range that was given in seconds: nothing would be found, and nothing said why */
export function checkEnd(endMs: bigint, path: string): void {
  if (endMs < plausibleMs) {
    throw invalidField(path, "lies before 1973: times are milliseconds since the epoch, not seconds");
  }
}
