/** Which values of a field of a time are meant; undefined: all of them. */
type Values = ReadonlySet<number> | undefined;

/** The fields of a cron expression, as they were read. Days of the week are 1 (Monday) to 7, `-1` is the last of a month. */
export interface Cron {
  minutes: Values;
  hours: Values;
  days: Values;
  months: Values;
  weekdays: Values;
  years: Values;
}

/** What a field of a cron expression may hold. */
export interface CronField {
  min: number;
  max: number;
  /** Names that stand for numbers. */
  names?: Readonly<Record<string, number>>;
}

const numbered = (names: string, first: number) =>
  Object.fromEntries(names.split(" ").map((name, i) => [name, first + i]));

export const cronFields = {
  cronMinutes: { min: 0, max: 59 },
  cronHours: { min: 0, max: 23 },
  dayOfMonth: { min: 1, max: 31, names: { L: -1, "-1": -1 } },
  month: { min: 1, max: 12, names: numbered("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1) },
  // As cron counts: 0 and 7 are Sunday.
  dayOfWeek: { min: 0, max: 7, names: numbered("MON TUE WED THU FRI SAT SUN", 1) },
  year: { min: 1970, max: 9999 },
} as const satisfies Record<string, CronField>;

/**
 * The values of a cron field: `*` or `?`, values, ranges `a-b`, steps `/n` behind a `*`, a value or a range, and lists of
 * these between commas. Undefined: all values. "broken": the text is none of these.
 */
export function readCronField(text: string, field: CronField): Values | "broken" {
  const all = text.trim().toUpperCase();
  if (all === "*" || all === "?") return undefined;
  const values = new Set<number>();
  for (const part of all.split(",")) {
    const found = readPart(part.trim(), field);
    if (found === undefined) return "broken";
    for (const value of found) values.add(value);
  }
  return values;
}

function readPart(part: string, { min, max, names = {} }: CronField): number[] | undefined {
  if (Object.hasOwn(names, part)) return [names[part] as number];
  const match = /^(?:(\*)|(\w+)(?:-(\w+))?)(?:\/(\d{1,4}))?$/.exec(part);
  if (match === null) return undefined;
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
  if (from === undefined || to === undefined || by < 1 || from > to) return undefined;
  return Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, i) => from + i * by);
}

/** Days of the week as they are counted in dates: Sunday is 7. */
export function weekdaysOf(values: Values): Values {
  return values && new Set([...values].map((day) => (day === 0 ? 7 : day)));
}

/** Whether a date is meant. Where both days of the month and of the week are given, either will do, as in cron. */
export function isCronDay({ days, months, weekdays, years }: Cron, date: Temporal.PlainDate): boolean {
  if (years?.has(date.year) === false || months?.has(date.month) === false) return false;
  const byDay = days && (days.has(date.day) || (days.has(-1) && date.day === date.daysInMonth));
  const byWeekday = weekdays?.has(date.dayOfWeek);
  return byDay === undefined || byWeekday === undefined ? (byDay ?? byWeekday ?? true) : byDay || byWeekday;
}

const HOURS = Array.from({ length: 24 }, (_, i) => i);
const MINUTES = Array.from({ length: 60 }, (_, i) => i);
const ascending = (values: Iterable<number>) => [...values].sort((a, b) => a - b);

/**
 * The first time of a date that is meant, at or after a moment, ms; undefined: none. At a change of the clock, times that
 * do not exist come as much later as the clock is put forward, and of those that come twice the first counts; where the
 * hours are all hours, the clock is followed as it goes: what does not exist is left out, what comes twice comes twice.
 */
export function cronTime(
  { minutes, hours }: Cron,
  date: Temporal.PlainDate,
  timeZone: string,
  fromMs: number,
): number | undefined {
  const from = Temporal.Instant.fromEpochMilliseconds(Math.ceil(fromMs)).toZonedDateTimeISO(timeZone);
  const place = Temporal.PlainDate.compare(date, from.toPlainDate());
  const usual = date.toZonedDateTime(timeZone).hoursInDay === 24;
  if (usual && place < 0) return undefined;
  const minuteList = ascending(minutes ?? MINUTES);
  let first: number | undefined;
  for (const hour of ascending(hours ?? HOURS)) {
    // On a usual day the clock tells which hours are over.
    if (usual && place === 0 && hour < from.hour) continue;
    for (const minute of minuteList) {
      for (const timeMs of momentsOf(date.toPlainDateTime({ hour, minute }), timeZone, hours === undefined)) {
        if (timeMs < fromMs || (first !== undefined && timeMs >= first)) continue;
        if (usual) return timeMs;
        first = timeMs;
      }
    }
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
