import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../errors.ts";

const unitsMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const periodMsMax = 36_500 * unitsMs.d;

/**
 * The length of a bucket, ms: a number and ms, s, m, h or d, as in `500ms`, `3600s`, `1.5h`.
 * @throws code 3 at `path` for any other text, less than 1 ms, a fraction of one, or more than 36,500 days
 */
export function readPeriod(text: string, path: string): number {
  const [, number, unit] = /^(\d{1,15}(?:\.\d{1,9})?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (number === undefined)
    throw invalidField(path, "must be a number and ms, s, m, h or d, such as 3600s", FieldRule.FORMAT);
  const [whole = "", fraction = ""] = number.split(".");
  // As a fraction of whole numbers: 1.1 × 1000 is not 1100 in binary.
  const scale = 10n ** BigInt(fraction.length);
  const product = BigInt(whole + fraction) * BigInt(unitsMs[unit as keyof typeof unitsMs]);
  if (product % scale !== 0n) throw invalidField(path, "must be a whole number of ms", FieldRule.RANGE);
  const periodMs = Number(product / scale);
  if (periodMs < 1) throw invalidField(path, "must be at least 1ms", FieldRule.RANGE);
  if (periodMs > periodMsMax) throw invalidField(path, "must be at most 36500d", FieldRule.RANGE);
  return periodMs;
}
