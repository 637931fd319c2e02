import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField, invalidFields } from "../errors.ts";
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
export function checkEndMs(endMs: bigint, path: string): void {
  const broken = brokenMs(endMs, path);
  if (broken !== undefined) throw invalidFields([broken]);
}

/** @throws code 3 for the start of an open time range that was given in seconds: everything would be found; small numbers mean that */
export function checkOpenStart(startMs: bigint, path: string): void {
  if (startMs >= secondsOf2001) checkEndMs(startMs, path);
}

// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: what google.protobuf.Timestamp may hold.
const secondsMin = -62_135_596_800n;
const secondsMax = 253_402_300_799n;
const msMax = secondsMax * 1000n + 999n;

/** A time of a request in ms since the epoch, fractions rounded up, but not beyond 9999. @throws code 3 when it is out of range. */
export function timestampMs({ seconds, nanos }: Timestamp, path: string): bigint {
  if (seconds < secondsMin || seconds > secondsMax || nanos < 0 || nanos > 999_999_999) {
    throw invalidField(path, "must be a time of the years 1 to 9999, with 0 to 999999999 nanoseconds", FieldRule.RANGE);
  }
  const ms = seconds * 1000n + BigInt(Math.ceil(nanos / 1_000_000));
  return ms > msMax ? msMax : ms; // the last one would be a time of the year 10000, which no answer can hold
}
