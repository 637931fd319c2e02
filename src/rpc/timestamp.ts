import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../errors.ts";

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
