/** The values of a field of a cron expression: 1 at the index of each that is meant. Undefined: all of them are. */
export type CronValues = Uint8Array | undefined;

/** The fields of a cron expression. Days of the week are 1 (Monday) to 7; the day 0 is the last of a month. */
export interface Cron {
  minutes: CronValues;
  hours: CronValues;
  days: CronValues;
  months: CronValues;
  weekdays: CronValues;
  years: CronValues;
}

/** What a field of a cron expression may hold. */
export interface CronField {
  min: number;
  max: number;
  /** Names that stand for numbers. */
  names?: Readonly<Record<string, number>>;
}

/** How long the text of a field may be, bytes. */
export const cronBytesMax = 1024;

const numbered = (names: string, first: number) =>
  Object.fromEntries(names.split(" ").map((name, i) => [name, first + i]));

export const cronFields = {
  cronMinutes: { min: 0, max: 59 },
  cronHours: { min: 0, max: 23 },
  dayOfMonth: { min: 1, max: 31, names: { L: 0, "-1": 0 } },
  month: { min: 1, max: 12, names: numbered("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1) },
  // As cron counts: 0 and 7 are Sunday.
  dayOfWeek: { min: 0, max: 7, names: numbered("MON TUE WED THU FRI SAT SUN", 1) },
  year: { min: 1970, max: 9999 },
} as const satisfies Record<string, CronField>;

const sunday = cronFields.dayOfWeek.max;

/**
 * The values of a cron field: `*` or `?`, values, ranges `a-b`, steps `/n` after a `*`, a value or a range, and lists of
 * these between commas. Undefined: all values. "broken": the text is none of these.
 */
export function readCronField(text: string, field: CronField): CronValues | "broken" {
  const all = text.trim().toUpperCase();
  if (all === "*" || all === "?") return undefined;
  const values = new Uint8Array(field.max + 1);
  // A part that is repeated costs nothing: `*/1` of years has thousands of values.
  for (const part of new Set(all.split(",").map((each) => each.trim()))) {
    if (!addPart(values, part, field)) return "broken";
  }
  return values;
}

/** Adds the values of one part of a list; false: it is none. */
function addPart(values: Uint8Array, part: string, { min, max, names = {} }: CronField): boolean {
  if (Object.hasOwn(names, part)) {
    values[names[part] as number] = 1;
    return true;
  }
  const match = /^(?:(\*)|(\w+)(?:-(\w+))?)(?:\/(\d{1,4}))?$/.exec(part);
  if (match === null) return false;
  const [, star, first, last, step] = match;
  const valueOf = (text: string) => {
    const named = Object.hasOwn(names, text) ? (names[text] as number) : -1;
    const value = /^\d{1,4}$/.test(text) ? Number(text) : named;
    return value >= min && value <= max ? value : undefined;
  };
  const from = star ? min : valueOf(first as string);
  const open = star || (last === undefined && step !== undefined);
  const to = open ? max : valueOf(last ?? (first as string));
  const by = Number(step ?? 1);
  // A range of weekdays that begins with Sunday, the last of them here.
  if (max === sunday && from === sunday && to !== undefined && to < sunday && by > 0) {
    for (let value = 0; value <= to; value += by) values[value === 0 ? sunday : value] = 1;
    return true;
  }
  if (from === undefined || to === undefined || by < 1 || from > to) return false;
  if (by === 1) values.fill(1, from, to + 1);
  else for (let value = from; value <= to; value += by) values[value] = 1;
  return true;
}

/** Days of the week as dates count them: Sunday is 7. */
export function weekdaysOf(values: CronValues): CronValues {
  if (values?.[0] === 1) values[7] = 1;
  return values;
}

const has = (values: CronValues, value: number) => values === undefined || values[value] === 1;
/** The first of these values at or after one; undefined: none up to `max`. */
function firstFrom(values: CronValues, value: number, max: number): number | undefined {
  const found = values === undefined ? value : values.indexOf(1, value);
  return found === -1 || found > max ? undefined : found;
}

/** A date of the proleptic Gregorian calendar. */
interface Day {
  year: number;
  month: number;
  day: number;
}

const YEAR_MAX = 9999;
const isLeap = (year: number) => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/** How many days a month has. */
export const daysIn = (year: number, month: number) => (month === 2 && isLeap(year) ? 29 : (DAYS[month - 1] as number));
/** 1 (Monday) to 7. */
const weekdayOf = ({ year, month, day }: Day) => new Date(Date.UTC(year, month - 1, day)).getUTCDay() || 7;

/** Whether a date is meant. Where both days of the month and of the week are given, either will do, as in cron. */
function isMeant({ days, weekdays }: Cron, date: Day): boolean {
  const isLast = days?.[0] === 1 && date.day === daysIn(date.year, date.month);
  if (days === undefined && weekdays === undefined) return true;
  if (days !== undefined && (isLast || days[date.day] === 1)) return true;
  return weekdays !== undefined && weekdays[weekdayOf(date)] === 1;
}

/** The first date of a year that is meant, at or after a day of it: at most 366 are tried. */
function firstIn(cron: Cron, from: Day): Day | undefined {
  const { year } = from;
  for (let month = firstFrom(cron.months, from.month, 12); month !== undefined; ) {
    for (let day = month === from.month ? from.day : 1; day <= daysIn(year, month); day++) {
      if (isMeant(cron, { year, month, day })) return { year, month, day };
    }
    month = firstFrom(cron.months, month + 1, 12);
  }
  return undefined;
}

/**
 * The first date that is meant, at or after another; undefined: there is none until the year 9999. Whether a year has such a
 * date depends, but for days of the week, on its being a leap year alone, so that two years stand for all others.
 */
export function nextCronDay(cron: Cron, from: Day): Day | undefined {
  if (from.year > YEAR_MAX) return undefined;
  const inFirst = has(cron.years, from.year) ? firstIn(cron, from) : undefined;
  if (inFirst !== undefined) return inFirst;
  const january = (year: number) => ({ year, month: 1, day: 1 });
  const anywhere = cron.weekdays !== undefined;
  const inLeap = anywhere || firstIn(cron, january(2000)) !== undefined;
  const inCommon = anywhere || firstIn(cron, january(2001)) !== undefined;
  let year = firstFrom(cron.years, from.year + 1, YEAR_MAX);
  while (year !== undefined && !(isLeap(year) ? inLeap : inCommon)) {
    if (!inLeap) return undefined;
    year = firstFrom(cron.years, year + 1, YEAR_MAX);
  }
  return year === undefined ? undefined : firstIn(cron, january(year));
}

const MINUTE_MS = 60_000;
const HOUR = 60;
const DAY = 24 * HOUR;

/**
 * The first time of a date that is meant, at or after a moment, ms; undefined: none. At a change of the clock, times that
 * do not exist come as much later as the clock is put forward, and of those that come twice the first counts; where the
 * hours are all hours, the clock is followed as it goes: what does not exist is left out, what comes twice comes twice.
 */
export function cronTime({ minutes, hours }: Cron, date: Day, timeZone: string, fromMs: number): number | undefined {
  const day = Temporal.PlainDate.from(date);
  const midnightMs = Date.UTC(date.year, date.month - 1, date.day);
  // No time of the date is read by another offset than one of those around it.
  const offsets = [-1, 0, 1, 2].map((days) => day.add({ days }).toZonedDateTime(timeZone).offsetNanoseconds / 1e6);
  const leastMs = Math.min(...offsets);
  const mostMs = Math.max(...offsets);
  let first: number | undefined;
  let minute = Math.max(0, Math.ceil((fromMs + leastMs - midnightMs) / MINUTE_MS));
  while (minute < DAY) {
    const hour = Math.floor(minute / HOUR);
    const inHour = has(hours, hour) ? firstFrom(minutes, minute % HOUR, HOUR - 1) : undefined;
    if (inHour === undefined) {
      minute = (hour + 1) * HOUR;
      continue;
    }
    const wallMs = midnightMs + (hour * HOUR + inHour) * MINUTE_MS;
    if (first !== undefined && wallMs - mostMs >= first) break;
    const time = day.toPlainDateTime({ hour, minute: inHour });
    for (const timeMs of leastMs === mostMs ? [wallMs - leastMs] : momentsOf(time, timeZone, hours === undefined)) {
      if (timeMs >= fromMs && (first === undefined || timeMs < first)) first = timeMs;
    }
    minute = hour * HOUR + inHour + 1;
  }
  return first;
}

function momentsOf(time: Temporal.PlainDateTime, timeZone: string, followed: boolean): number[] {
  const earlier = time.toZonedDateTime(timeZone, { disambiguation: "earlier" });
  const later = time.toZonedDateTime(timeZone, { disambiguation: "later" });
  if (earlier.epochMilliseconds === later.epochMilliseconds) return [earlier.epochMilliseconds];
  const exists = earlier.toPlainDateTime().equals(time);
  if (followed) return exists ? [earlier.epochMilliseconds, later.epochMilliseconds] : [];
  return [(exists ? earlier : later).epochMilliseconds];
}
