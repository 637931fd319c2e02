import { DateTime, IANAZone } from "luxon";

/*
 * Runs found the other way round: every day of the range is asked whether it is one, by its number and its parts, and the
 * offsets of the time zone come from luxon. No calendar arithmetic of the service is used.
 */

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** A date by its parts; the weekday is 1 (Monday) to 7. */
interface Day {
  year: number;
  month: number;
  day: number;
  weekday: number;
  last: boolean;
  /** Days since 1 January 1970. */
  number: number;
}

export interface OracleSpec {
  zone: string;
  /** The wall-clock time of the first run, for example `2026-01-05T02:30`. */
  start: string;
  /** Elapsed time between runs, minutes; then nothing else counts. */
  everyMinutes?: number;
  /** Whether a date has runs; `first` is that of the start. */
  day?: (day: Day, first: Day) => boolean;
  /** Hours and minutes of runs; absent: those of the start. */
  hours?: readonly number[] | "all";
  minutes?: readonly number[];
}

function dayOf(number: number): Day {
  const date = new Date(number * DAY_MS);
  const tomorrow = new Date((number + 1) * DAY_MS);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    weekday: ((date.getUTCDay() + 6) % 7) + 1,
    last: tomorrow.getUTCDate() === 1,
    number,
  };
}

/** The moments at which clocks of a zone show this time, ms; `wallMs` is the time as if it were UTC. */
function moments(zone: IANAZone, wallMs: number): { found: number[]; shifted: number } {
  const before = zone.offset(wallMs - DAY_MS) * MINUTE_MS;
  const after = zone.offset(wallMs + DAY_MS) * MINUTE_MS;
  const found = [...new Set([before, after])]
    .map((offset) => wallMs - offset)
    .filter((ms) => ms + zone.offset(ms) * MINUTE_MS === wallMs)
    .sort((a, b) => a - b);
  // Where no clock shows it, it is read by the offset before the change, and so comes later.
  return { found, shifted: wallMs - before };
}

export function startOf({ zone, start }: OracleSpec): number {
  return DateTime.fromISO(start, { zone }).toMillis();
}

/** All runs from `fromMs` until before `untilMs`, ascending. */
export function oracleRuns(spec: OracleSpec, fromMs: number, untilMs: number): number[] {
  const startMs = startOf(spec);
  const runs = new Set<number>();
  if (spec.everyMinutes !== undefined) {
    for (let at = DateTime.fromMillis(startMs); at.toMillis() < untilMs; at = at.plus({ minutes: spec.everyMinutes })) {
      runs.add(at.toMillis());
    }
  } else {
    const zone = IANAZone.create(spec.zone);
    const wallStart = DateTime.fromISO(spec.start, { zone: "utc" }).toMillis();
    const first = dayOf(Math.floor(wallStart / DAY_MS));
    const startOfDayMs = wallStart % DAY_MS;
    const byCron = spec.minutes !== undefined;
    const hours = spec.hours === "all" ? Array.from({ length: 24 }, (_, i) => i) : (spec.hours ?? []);
    const times = byCron
      ? hours.flatMap((hour) => (spec.minutes ?? []).map((minute) => (hour * 60 + minute) * MINUTE_MS))
      : [startOfDayMs];
    for (let number = first.number; number * DAY_MS < untilMs + DAY_MS; number++) {
      if (spec.day?.(dayOf(number), first) === false) continue;
      for (const time of times) {
        const { found, shifted } = moments(zone, number * DAY_MS + time);
        if (spec.hours === "all") for (const ms of found) runs.add(ms);
        else runs.add(found[0] ?? shifted);
      }
    }
  }
  return [...runs].filter((ms) => ms >= startMs && ms >= fromMs && ms < untilMs).sort((a, b) => a - b);
}
