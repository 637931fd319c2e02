import { type DescEnum, ScalarType } from "@bufbuild/protobuf";
import { didYouMean } from "../did-you-mean.ts";
import { exactInteger, int32Range, int64Range, type Range, uint32Range, uint64Range } from "./integer.ts";
import { string } from "./read-string.ts";
import { fail, numberText, quotedKey, type Scan, takeNull, unexpected, word } from "./scan.ts";

/** Reads one value at `s.at` and leaves the scan after it. */
export type Read = (s: Scan) => unknown;

/** The reader of a scalar; 64-bit integers become bigint, or text with `longAsString`. */
export function scalarReader(scalar: ScalarType, longAsString: boolean): Read {
  switch (scalar) {
    case ScalarType.STRING:
      return string;
    case ScalarType.BOOL:
      return readBool;
    case ScalarType.BYTES:
      return readBytes;
    case ScalarType.DOUBLE:
      return readDouble;
    case ScalarType.FLOAT:
      return readFloat;
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return (s) => readSmall(s, -2147483648, 2147483647, int32Range);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return (s) => readSmall(s, 0, 4294967295, uint32Range);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return longAsString ? (s) => String(readBig(s, uint64Range)) : (s) => readBig(s, uint64Range);
    default:
      return longAsString ? (s) => String(readBig(s, int64Range)) : (s) => readBig(s, int64Range);
  }
}

const unitMs: Readonly<Record<string, bigint>> = { ms: 1n, s: 1000n, m: 60_000n, h: 3_600_000n, d: 86_400_000n };

/** Returns how many seconds a duration such as `1h30m` takes; undefined: it is none, takes no whole seconds, or too many. */
function durationSec(text: string): bigint | undefined {
  if (!/^(?:\d{1,15}(?:ms|[smhd]))+$/.test(text)) return undefined;
  let ms = 0n;
  for (const [, count = "", unit = ""] of text.matchAll(/(\d+)(ms|[smhd])/g))
    ms += BigInt(count) * (unitMs[unit] ?? 0n);
  return ms % 1000n === 0n && ms / 1000n <= int64Range.max ? ms / 1000n : undefined;
}

/** The reader of a number of seconds by `read`, or of a duration. */
export function secondsReader(read: Read): Read {
  return (s) => {
    const from = s.at;
    if (s.codes[from] !== 34) return read(s);
    const text = string(s);
    const seconds = durationSec(text);
    if (seconds !== undefined) return seconds;
    if (!/^-?\d+$/.test(text))
      fail(from, 'must be a number of seconds, or a duration in whole seconds such as "1h30m" (units ms, s, m, h, d)');
    s.at = from;
    return read(s);
  };
}

function readBool(s: Scan): boolean {
  const c = s.codes[s.at] as number;
  if (c !== 116 && c !== 102) unexpected(s, "true or false");
  word(s, c === 116 ? "true" : "false");
  return c === 116;
}

/** Up to 15 plain decimal digits, quoted or not; NaN, with `s.at` unmoved, when the text is any other. */
function shortInteger(s: Scan): number {
  const { codes } = s;
  let at = s.at;
  let c = codes[at] as number;
  const quoted = c === 34;
  if (quoted) c = codes[++at] as number;
  const negative = c === 45;
  if (negative) c = codes[++at] as number;
  const from = at;
  let value = 0;
  while (c >= 48 && c <= 57) {
    value = value * 10 + (c - 48);
    c = codes[++at] as number;
  }
  const count = at - from;
  if (count === 0 || count > 15 || (count > 1 && codes[from] === 48)) return Number.NaN;
  if (quoted) {
    if (c !== 34) return Number.NaN;
    at++;
  } else if (c === 46 || (c | 32) === 101) return Number.NaN;
  s.at = at;
  return negative ? 0 - value : value;
}

function readSmall(s: Scan, min: number, max: number, range: Range): number {
  const from = s.at;
  const value = shortInteger(s);
  if (value >= min && value <= max) return value;
  s.at = from;
  return Number(slowInteger(s, range));
}

function readBig(s: Scan, range: Range): bigint {
  const from = s.at;
  const value = shortInteger(s);
  if (value >= 0 || (value < 0 && range.min < 0n)) return BigInt(value);
  s.at = from;
  return slowInteger(s, range);
}

function slowInteger(s: Scan, range: Range): bigint {
  const from = s.at;
  const value = exactInteger(numeric(s, "an integer"), range);
  if (typeof value === "string") fail(from, value);
  return value;
}

/** The text of a number, or of what is in a string in its place. */
function numeric(s: Scan, expected: string): string {
  const c = s.codes[s.at] as number;
  if (c === 34) return string(s);
  if (c !== 45 && !(c >= 48 && c <= 57)) unexpected(s, expected);
  return numberText(s);
}

/** Reads a double, quoted or not, with "NaN", "Infinity" and "-Infinity". */
export function readDouble(s: Scan): number {
  const from = s.at;
  const c = s.codes[from] as number;
  if (c === 34) {
    const value = doubleOf(string(s));
    if (typeof value === "string") fail(from, value);
    return value;
  }
  if (c !== 45) {
    const short = shortInteger(s);
    if (short >= 0) return short;
  }
  const value = Number(numeric(s, "a number"));
  if (!Number.isFinite(value)) fail(from, "is outside the range of a double");
  return value;
}

function readFloat(s: Scan): number {
  const from = s.at;
  const value = readDouble(s);
  const single = Math.fround(value);
  if (!Number.isFinite(single) && Number.isFinite(value)) fail(from, "is outside the range of a float");
  return single;
}

const decimal = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

/** The double of a number's text, or what is wrong with it. */
export function doubleOf(text: string): number | string {
  if (decimal.test(text)) {
    const value = Number(text);
    return Number.isFinite(value) ? value : "is outside the range of a double";
  }
  if (text === "NaN") return Number.NaN;
  if (text === "Infinity") return Number.POSITIVE_INFINITY;
  if (text === "-Infinity") return Number.NEGATIVE_INFINITY;
  return "must be a number";
}

function readBytes(s: Scan): Uint8Array {
  const from = s.at;
  const value = bytesOf(string(s));
  if (value === undefined) fail(from, "must be base64");
  return value;
}

const standard = /^[A-Za-z0-9+/]*(={0,2})$/;
const urlSafe = /^[A-Za-z0-9_-]*(={0,2})$/;

/** The bytes of base64 or base64url, padded or not, the two alphabets never mixed; undefined for any other text. */
export function bytesOf(text: string): Uint8Array | undefined {
  const padding = (standard.exec(text) ?? urlSafe.exec(text))?.[1];
  if (padding === undefined) return undefined;
  if (padding === "" ? text.length % 4 === 1 : text.length % 4 !== 0) return undefined;
  return new Uint8Array(Buffer.from(text, "base64"));
}

/** The reader of an enum: a name, an alias, or a number; a closed enum refuses numbers that it does not declare. */
export function enumReader(desc: DescEnum): Read {
  const numbers = enumNumbers(desc);
  const isNull = desc.typeName === "google.protobuf.NullValue";
  return (s) => {
    if (isNull && takeNull(s)) return 0;
    const from = s.at;
    const c = s.codes[from] as number;
    if (c === 34) {
      const name = string(s);
      const number = numbers.get(name);
      if (number === undefined) fail(from, unknownValue(desc, name));
      return number;
    }
    if (c !== 45 && !(c >= 48 && c <= 57)) unexpected(s, `a value of ${desc.name}`);
    const number = readSmall(s, -2147483648, 2147483647, int32Range);
    if (!desc.open && desc.value[number] === undefined) fail(from, `${number} is no value of ${desc.name}`);
    return number;
  };
}

/** Number by proto name and by JSON name. */
export function enumNumbers(desc: DescEnum): Map<string, number> {
  return new Map(desc.values.flatMap((value) => [value.name, value.jsonName].map((name) => [name, value.number])));
}

const listedMax = 20;

/** Says that an enum has no such value, and which is the nearest, or else all when they are few. */
export function unknownValue(desc: DescEnum, name: string): string {
  const names = desc.values.map((value) => value.name);
  const few = names.length <= listedMax ? `; it is one of ${names.join(", ")}` : "";
  const known = [...enumNumbers(desc).keys()];
  const near = didYouMean(name, known) || didYouMean(`${desc.sharedPrefix ?? ""}${name}`, known);
  return `${quotedKey(name)} is no value of ${desc.name}${near || few}`;
}
