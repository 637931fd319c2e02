import { type Cron, cronTime, daysIn, nextCronDay } from "./cron.ts";

/** How a window comes again. Days of the week are 1 (Monday) to 7, 1 at the index of each; the day -1 is the last of its month. */
export type Recurrence =
  | { unit: "minutes" | "hours" | "days"; interval: number }
  | { unit: "weeks"; interval: number; weekdays: Uint8Array }
  | { unit: "months"; interval: number; day: number }
  | { unit: "years"; interval: number; month: number; day: number }
  | { unit: "cron"; cron: Cron };

/** When a window runs. */
export interface Timing {
  /** No run is before it; its time of the day is that of every run, but for those by cron. */
  startMs: number;
  /** An IANA name: the time zone of dates and times of the day. */
  timeZone: string;
  /** Undefined: one run, at `startMs`. */
  recurrence: Recurrence | undefined;
}

const MINUTE_MS = 60_000;
const YEAR_MAX = 9999;
// The calendar comes again after 400 years: what is not found among this many months, or years, is never found.
const MONTHS_MAX = 4800;

/**
 * The first start of a run at or after a moment, ms since the epoch; undefined: there is none.
 *
 * Days, weeks, months and years are those of the time zone's calendar, so that runs keep their time of the day when the
 * clock is changed: a time that does not exist on a day comes as much later as the clock is put forward, and of one that
 * comes twice the first counts. Minutes and hours are time that passes. Months without the day have no run.
 */
export function nextStartMs({ startMs, timeZone, recurrence }: Timing, fromMs: number): number | undefined {
  if (recurrence === undefined) return startMs >= fromMs ? startMs : undefined;
  const first = zoned(startMs, timeZone);
  const from = zoned(Math.max(fromMs, startMs), timeZone);
  switch (recurrence.unit) {
    case "minutes":
    case "hours": {
      const stepMs = recurrence.interval * (recurrence.unit === "hours" ? 60 : 1) * MINUTE_MS;
      return startMs + Math.max(0, Math.ceil((fromMs - startMs) / stepMs)) * stepMs;
    }
    case "days":
      return firstOf(days(first, from, recurrence.interval), first, from);
    case "weeks":
      return firstOf(weekDays(first, from, recurrence), first, from);
    case "months":
    case "years":
      return firstOf(monthDays(first, from, recurrence), first, from);
    case "cron":
      return nextCronMs(recurrence.cron, from);
  }
}

/** The last start of a run until a moment, ms since the epoch; `startMs` is one of its starts. */
export function lastStartMs(timing: Timing, startMs: number, untilMs: number): number {
  let lastMs = startMs;
  let beyondMs = untilMs + 1;
  for (let atMs = lastMs + 1; atMs < beyondMs; atMs = lastMs + Math.ceil((beyondMs - lastMs) / 2)) {
    const nextMs = nextStartMs(timing, atMs);
    if (nextMs !== undefined && nextMs <= untilMs) lastMs = nextMs;
    else beyondMs = atMs;
  }
  return lastMs;
}

const zoned = (ms: number, timeZone: string) =>
  Temporal.Instant.fromEpochMilliseconds(Math.ceil(ms)).toZonedDateTimeISO(timeZone);

/** The first of these dates, which ascend, whose run at the time of the day of `first` is not before `from`. */
function firstOf(
  dates: Iterable<Temporal.PlainDate>,
  first: Temporal.ZonedDateTime,
  from: Temporal.ZonedDateTime,
): number | undefined {
  const firstDate = first.toPlainDate();
  const plainTime = first.toPlainTime();
  for (const date of dates) {
    if (date.year > YEAR_MAX) return undefined;
    // The first run is at its own moment, even if that is the second of two such times.
    const { epochMilliseconds } = date.equals(firstDate)
      ? first
      : date.toZonedDateTime({ timeZone: first.timeZoneId, plainTime });
    if (epochMilliseconds >= from.epochMilliseconds) return epochMilliseconds;
  }
  return undefined;
}

/** Every this many days from the first date on; the first answered is no later than the date of `from`, or the first. */
function* days(first: Temporal.ZonedDateTime, from: Temporal.ZonedDateTime, interval: number) {
  const start = first.toPlainDate();
  const passed = start.until(from.toPlainDate(), { largestUnit: "days" }).days;
  for (let at = stepBefore(passed, interval); ; at += interval) yield start.add({ days: at });
}

/** The largest multiple of `interval` that is below `passed`, at least 0: a run of the day before may be late. */
const stepBefore = (passed: number, interval: number) => Math.max(0, Math.floor((passed - 1) / interval)) * interval;

function* weekDays(
  first: Temporal.ZonedDateTime,
  from: Temporal.ZonedDateTime,
  { interval, weekdays }: { interval: number; weekdays: Uint8Array },
) {
  const start = first.toPlainDate();
  const monday = start.subtract({ days: start.dayOfWeek - 1 });
  const passed = Math.floor(monday.until(from.toPlainDate(), { largestUnit: "days" }).days / 7);
  for (let at = stepBefore(passed, interval); ; at += interval) {
    for (let day = 1; day <= 7; day++) {
      const date = monday.add({ days: at * 7 + day - 1 });
      if (weekdays[day] === 1 && Temporal.PlainDate.compare(date, start) >= 0) yield date;
    }
  }
}

function* monthDays(
  first: Temporal.ZonedDateTime,
  from: Temporal.ZonedDateTime,
  recurrence: Extract<Recurrence, { unit: "months" | "years" }>,
) {
  const start = first.toPlainDate();
  const yearly = recurrence.unit === "years";
  const interval = recurrence.interval * (yearly ? 12 : 1);
  // Months counted from the year 0: thousands may be gone through before one has the day.
  const monthOf = (date: Temporal.PlainDate) => date.year * 12 + date.month - 1;
  const month = yearly ? start.year * 12 + recurrence.month - 1 : monthOf(start);
  const begin = month + stepBefore(monthOf(from.toPlainDate()) - month, interval);
  for (let at = begin, count = 0; count < MONTHS_MAX; at += interval, count++) {
    const year = Math.floor(at / 12);
    if (year > YEAR_MAX) return;
    const inMonth = { year, month: (at % 12) + 1 };
    const last = daysIn(inMonth.year, inMonth.month);
    const day = recurrence.day === -1 ? last : recurrence.day;
    if (day > last) continue;
    const date = Temporal.PlainDate.from({ ...inMonth, day });
    if (Temporal.PlainDate.compare(date, start) >= 0) yield date;
  }
}

function nextCronMs(cron: Cron, from: Temporal.ZonedDateTime): number | undefined {
  // A run of the day before may be late.
  let date = from.toPlainDate().subtract({ days: 1 });
  for (;;) {
    const day = nextCronDay(cron, date);
    if (day === undefined) return undefined;
    const found = cronTime(cron, day, from.timeZoneId, from.epochMilliseconds);
    if (found !== undefined) return found;
    date = Temporal.PlainDate.from(day).add({ days: 1 });
  }
}
