import { protoCamelCase, protoSnakeCase } from "@bufbuild/protobuf/reflect";

/** Seconds and nanoseconds, as google.protobuf.Timestamp and Duration hold them. */
export interface Instant {
  readonly seconds: bigint;
  readonly nanos: number;
}

const rfc3339 =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))$/;
const minSec = -62135596800;
const maxSec = 253402300799;
const durationSecMax = 315576000000;

/** The instant of an RFC 3339 text from year 1 to 9999, real dates only; else what is wrong with it. */
export function timestampOf(text: string): Instant | string {
  const parts = rfc3339.exec(text);
  if (parts === null) return 'must be a time such as "2024-05-06T07:08:09.123Z"';
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const offsetHour = Number(parts[9] ?? 0);
  const offsetMinute = Number(parts[10] ?? 0);
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return "is no date of the calendar";
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return "is no time of the day";
  const offset = (offsetHour * 3600 + offsetMinute * 60) * (parts[8] === "-" ? -1 : 1);
  const seconds = dayNumber(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
  if (seconds < minSec || seconds > maxSec) return "must be from year 1 to year 9999 in UTC";
  return { seconds: BigInt(seconds), nanos: nanosOf(parts[7]) };
}

/** The text of a timestamp: Z, with three decimals, six or nine when needed. Throws when it is out of range. */
export function timestampText({ seconds, nanos }: Instant): string {
  const sec = Number(seconds);
  if (!(sec >= minSec && sec <= maxSec) || !(nanos >= 0 && nanos <= 999999999)) {
    throw new Error(`google.protobuf.Timestamp out of range: ${seconds} s, ${nanos} ns`);
  }
  return `${new Date(sec * 1000).toISOString().slice(0, 19)}.${decimals(nanos)}Z`;
}

/** The duration of a text such as `-1.5s`; else what is wrong with it. */
export function durationOf(text: string): Instant | string {
  const parts = /^(-?)([0-9]+)(?:\.([0-9]{1,9}))?s$/.exec(text);
  if (parts === null) return 'must be a duration in seconds such as "1.5s"';
  const size = Number(parts[2]);
  if (size > durationSecMax) return `must be from -${durationSecMax}s to ${durationSecMax}s`;
  const nanos = nanosOf(parts[3]);
  if (parts[1] === "") return { seconds: BigInt(size), nanos };
  return { seconds: -BigInt(size), nanos: nanos === 0 ? 0 : -nanos };
}

/** The text of a duration, with three, six or nine decimals when it is not whole. Throws when it is out of range. */
export function durationText({ seconds, nanos }: Instant): string {
  const sec = Number(seconds);
  const mixed = (sec > 0 && nanos < 0) || (sec < 0 && nanos > 0);
  if (!(Math.abs(sec) <= durationSecMax) || !(Math.abs(nanos) <= 999999999) || mixed) {
    throw new Error(`google.protobuf.Duration out of range: ${seconds} s, ${nanos} ns`);
  }
  const sign = sec < 0 || nanos < 0 ? "-" : "";
  return `${sign}${Math.abs(sec)}${nanos === 0 ? "" : `.${decimals(Math.abs(nanos))}`}s`;
}

/** The paths of a field mask's text. Each may be in lowerCamelCase or in the fields' own spelling. */
export function fieldMaskOf(text: string): string[] | string {
  if (text === "") return [];
  const paths = text.split(",");
  if (!paths.every((path) => /^[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*$/.test(path))) {
    return "must be field paths, separated by commas";
  }
  return paths.map((path) => (path.includes("_") ? path : protoSnakeCase(path)));
}

/** The text of a field mask. Throws on a path that no text stands for. */
export function fieldMaskText(paths: readonly string[]): string {
  const names = paths.map((path) => {
    const name = protoCamelCase(path);
    if (protoSnakeCase(name) === path) return name;
    if (path.includes("_")) return path;
    throw new Error(`google.protobuf.FieldMask holds a path that JSON cannot: ${path}`);
  });
  return names.join(",");
}

function nanosOf(fraction: string | undefined): number {
  return fraction === undefined ? 0 : Number(fraction.padEnd(9, "0"));
}

function decimals(nanos: number): string {
  const nine = String(nanos).padStart(9, "0");
  if (nine.endsWith("000000")) return nine.slice(0, 3);
  return nine.endsWith("000") ? nine.slice(0, 6) : nine;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Days since 1970-01-01, by Hinnant's algorithm; Date.UTC takes years below 100 for those of 1900. */
function dayNumber(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const ofEra = y - era * 400;
  const ofYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return era * 146097 + ofEra * 365 + Math.floor(ofEra / 4) - Math.floor(ofEra / 100) + ofYear - 719468;
}
