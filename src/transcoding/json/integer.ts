const grammar = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** The least and greatest value of an integer type. */
export interface Range {
  readonly min: bigint;
  readonly max: bigint;
}

export const int32Range: Range = { min: -(2n ** 31n), max: 2n ** 31n - 1n };
export const uint32Range: Range = { min: 0n, max: 2n ** 32n - 1n };
export const int64Range: Range = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
export const uint64Range: Range = { min: 0n, max: 2n ** 64n - 1n };

/**
 * The integer that a JSON number's text stands for, exact to the last digit: `12`, `1e3`, `1.0`.
 * Answers what is wrong instead, as text that reads on after a field's name.
 */
export function exactInteger(text: string, range: Range): bigint | string {
  const parts = grammar.exec(text);
  if (parts === null) return isTime(text) ? inMs : "must be an integer";
  const fraction = parts[3] ?? "";
  const all = ((parts[2] ?? "") + fraction).replace(/^0+/, "");
  const digits = withoutZerosAtEnd(all);
  if (digits === "") return 0n;
  const exponent = Number(parts[4] ?? 0) - fraction.length + (all.length - digits.length);
  if (exponent < 0) return "must be an integer, without a fraction";
  if (digits.length + exponent > 20) return outside(range);
  const size = BigInt(digits + "0".repeat(exponent));
  const value = parts[1] === "-" ? -size : size;
  return value < range.min || value > range.max ? outside(range) : value;
}

/** As `exactInteger`, for text that may only be decimal digits with a minus, as in URLs. */
export function decimalInteger(text: string, range: Range): bigint | string {
  if (!/^-?[0-9]+$/.test(text)) return "must be a decimal integer";
  const digits = text.replace(/^(-?)0+(?=[0-9])/, "$1");
  if (digits.length > 21) return outside(range);
  const value = BigInt(digits);
  return value < range.min || value > range.max ? outside(range) : value;
}

// All integers that stand for times are ms.
const inMs = "must be an integer: times are ms since the epoch, such as 1767225600000";

/** Tells whether a text begins as a time of RFC 3339 does. */
const isTime = (text: string) => /^\d{4}-\d\d-\d\d(?:[Tt ]|$)/.test(text);

// Not by /0+$/, which takes quadratic time on many zeros before another digit.
function withoutZerosAtEnd(digits: string): string {
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 48) end--;
  return digits.slice(0, end);
}

function outside({ min, max }: Range): string {
  return `must be from ${min} to ${max}`;
}
