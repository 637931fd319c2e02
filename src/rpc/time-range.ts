import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidFields } from "../errors.ts";
import type { Broken } from "./constraint-rules.ts";

/** A day in 1973, in ms. No time that is sent in ms lies before it; in seconds all do, until the year 5138. */
export const plausibleMs = 100_000_000_000n;
const secondsOf2001 = 1_000_000_000n;

const hint = "lies before 1973: times are milliseconds since the epoch, not seconds";

/** What is wrong with a time that was given in seconds; undefined when nothing is. */
export function brokenMs(ms: bigint, path: string): Broken | undefined {
  return ms < plausibleMs ? { path, rule: hint, id: FieldRule.RANGE } : undefined;
}

/** @throws code 3 for the end of a time range that was given in seconds: nothing would be found, and nothing said why */
export function checkEnd(endMs: bigint, path: string): void {
  const broken = brokenMs(endMs, path);
  if (broken !== undefined) throw invalidFields([broken]);
}

/** @throws code 3 for the start of an open time range that was given in seconds: everything would be found; small numbers mean that */
export function checkOpenStart(startMs: bigint, path: string): void {
  if (startMs >= secondsOf2001) checkEnd(startMs, path);
}
