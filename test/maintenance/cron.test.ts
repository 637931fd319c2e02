import { create, fromJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { RecurrenceSchema, ScheduleSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { cronBytesMax, cronFields, readCronField } from "../../src/maintenance/cron.ts";
import { nextStartMs } from "../../src/maintenance/recurrence.ts";
import { readSchedule, windowPlanOf } from "../../src/maintenance/schedule.ts";
import { cases } from "../support/cases.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { oracleRuns } from "./oracle.ts";

const dayMs = 86_400_000;

interface Sets {
  minutes: number[];
  hours: number[] | undefined;
  days?: number[] | undefined;
  months?: number[] | undefined;
  weekdays?: number[] | undefined;
  years?: number[] | undefined;
}

function scheduleOf({ minutes, hours, days, months, weekdays, years }: Sets, timeZone: string, start: number) {
  const text = (values: number[] | undefined) => values?.join(",") ?? "*";
  const recurrence = fromJson(RecurrenceSchema, {
    type: 7,
    cronMinutes: text(minutes),
    cronHours: text(hours),
    dayOfMonth: text(days),
    month: text(months),
    dayOfWeek: text(weekdays),
    year: text(years),
  });
  return create(ScheduleSchema, { start: BigInt(start), duration: 1n, timeZone, recurrence });
}

const some = (min: number, max: number, maxLength = 4) =>
  fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength });
const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });

describe("the next run of a cron is that of a plain model", () => {
  const zones = Intl.supportedValuesOf("timeZone");
  /** The first change of a zone's clock after a moment; where there is none, the moment. */
  function changeOf(timeZone: string, afterMs: number): number {
    const at = Temporal.Instant.fromEpochMilliseconds(afterMs).toZonedDateTimeISO(timeZone);
    return at.getTimeZoneTransition("next")?.epochMilliseconds ?? afterMs;
  }

  test("minute by minute around the changes of the clocks of all time zones", () => {
    const moment = fc.integer({ min: Date.UTC(2005, 0, 1), max: Date.UTC(2030, 0, 1) });
    const around = fc.integer({ min: -2 * dayMs, max: dayMs });
    const sets = fc.record({ minutes: some(0, 59), hours: maybe(some(0, 4)), weekdays: maybe(some(1, 7)) });
    fc.assert(
      fc.property(fc.constantFrom(...zones), moment, around, sets, (zone, afterMs, awayMs, set) => {
        const fromMs = changeOf(zone, afterMs) + awayMs;
        const plan = windowPlanOf(scheduleOf(set, zone, fromMs - 10 * dayMs));
        const start = Temporal.Instant.fromEpochMilliseconds(fromMs - 3 * dayMs)
          .toZonedDateTimeISO(zone)
          .toPlainDateTime();
        const oracle = {
          zone,
          start: start.toString(),
          hours: set.hours ?? ("all" as const),
          minutes: set.minutes,
          day: ({ weekday }: { weekday: number }) => set.weekdays?.includes(weekday) ?? true,
        };
        const [expected] = oracleRuns(oracle, fromMs, fromMs + 9 * dayMs);
        expect(nextStartMs(plan, fromMs)).toBe(expected);
      }),
      { numRuns: cases(1200) },
    );
  });

  test("day by day until the year 9999, for dates that are rare, far away or never", () => {
    const days = fc.oneof(some(29, 31, 2), some(1, 31, 2), fc.constant<number[]>([29]));
    const months = fc.oneof(some(1, 12, 2), fc.constant<number[]>([2]), fc.constant<number[]>([2, 4, 6, 9, 11]));
    const years = fc.oneof(some(1970, 2100, 6), some(2100, 9999, 30));
    const sets = fc.record({
      minutes: fc.constant<number[]>([0]),
      hours: fc.constant<number[]>([0]),
      days,
      months,
      years: maybe(years),
    });
    const from = fc.integer({ min: 2000, max: 9999 });
    fc.assert(
      fc.property(sets, from, (set, year) => {
        const fromMs = Date.UTC(year, 5, 15);
        let expected: number | undefined;
        for (let at = fromMs; expected === undefined && at < Date.UTC(10_000, 0, 1); at += dayMs) {
          const date = new Date(at);
          // The oracle is plain, not slow: a year that is not meant is passed over.
          if (set.years?.includes(date.getUTCFullYear()) === false) at = Date.UTC(date.getUTCFullYear(), 11, 31);
          else if (set.days.includes(date.getUTCDate()) && set.months.includes(date.getUTCMonth() + 1)) expected = at;
        }
        const read = readSchedule(scheduleOf(set, "UTC", fromMs), "schedule");
        expect("plan" in read ? nextStartMs(read.plan, fromMs) : undefined).toBe(expected);
      }),
      { numRuns: cases(100) },
    );
  });

  test("a 29 February of years that lie centuries apart is found", () => {
    const set = { minutes: [0], hours: [0], days: [29], months: [2], years: [2027, 2400] };
    expect(nextStartMs(windowPlanOf(scheduleOf(set, "UTC", 0)), Date.UTC(2026, 0, 1))).toBe(Date.UTC(2400, 1, 29));
  });
});

describe("the text of a cron", () => {
  test("costs what its distinct parts do: a megabyte of all years is read at once", () => {
    const before = process.threadCpuUsage();
    const values = readCronField(`${"*/1,".repeat(250_000)}1970`, cronFields.year);
    expect(process.threadCpuUsage(before).user / 1000).toBeLessThan(turnMsMax);
    expect(values).toEqual(new Uint8Array(10_000).fill(1, 1970));
  });

  test("may be a kilobyte; a longer one is refused, with its place", () => {
    const parts = "*/1,".repeat(cronBytesMax / 4);
    const recurrence = (year: string) => fromJson(RecurrenceSchema, { type: 7, cronMinutes: 0, year });
    const read = (year: string) =>
      readSchedule(create(ScheduleSchema, { duration: 1n, recurrence: recurrence(year) }), "schedule");
    expect(read(parts.slice(0, -1))).toHaveProperty("plan");
    expect(read(`${parts}1970`)).toEqual({
      broken: [{ path: "schedule.recurrence.year", rule: "must be at most 1024 bytes", id: FieldRule.SIZE }],
    });
  });

  test.each([0, 1, 4, 6])("is held to the same bound by a recurrence of type %i, which does not need it", (type) => {
    const needed = { interval: 1, dayOfWeek: "MON", month: 1, dayOfMonth: 1 };
    for (const year of ["9".repeat(1025), ["9".repeat(1025)], { a: "9".repeat(1025) }]) {
      const recurrence = fromJson(RecurrenceSchema, { type, ...needed, year });
      const read = readSchedule(create(ScheduleSchema, { duration: 1n, recurrence }), "schedule");
      expect(read).toEqual({
        broken: [{ path: "schedule.recurrence.year", rule: "must be at most 1024 bytes", id: FieldRule.SIZE }],
      });
    }
  });
});
