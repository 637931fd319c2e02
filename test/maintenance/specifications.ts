import type { JsonObject } from "@bufbuild/protobuf";
import type { OracleSpec } from "./oracle.ts";

/** A specification of a recurrence, as the API takes it, and the same for the oracle. */
export interface Specification {
  name: string;
  recurrence: JsonObject;
  oracle: OracleSpec;
}

const berlin = "Europe/Berlin";
const newYork = "America/New_York";
const lordHowe = "Australia/Lord_Howe";
const spec = (name: string, recurrence: JsonObject, oracle: OracleSpec): Specification => ({
  name,
  recurrence,
  oracle,
});
/** A cron from the beginning of 2026 on. */
const cron = (name: string, fields: JsonObject, zone: string, oracle: Omit<OracleSpec, "zone" | "start">) =>
  spec(name, { type: 7, ...fields }, { zone, start: "2026-01-01T00:00", ...oracle });
const weeksBetween = (a: number, b: number) => Math.floor((a + 3) / 7) - Math.floor((b + 3) / 7);

/** Forty, over all types. The starts at 02:30, and near midnight, meet the changes of the clocks of their zones. */
export const specifications: readonly Specification[] = [
  spec("every 90 minutes", { type: 1, interval: 90 }, { zone: berlin, start: "2026-01-05T02:30", everyMinutes: 90 }),
  spec("every 7 minutes", { type: 1, interval: 7 }, { zone: "UTC", start: "2027-10-05T02:30", everyMinutes: 7 }),
  spec("every hour", { type: 2, interval: 1 }, { zone: newYork, start: "2027-02-05T02:30", everyMinutes: 60 }),
  spec("every 5 hours", { type: 2, interval: 5 }, { zone: lordHowe, start: "2026-01-05T02:15", everyMinutes: 300 }),
  ...[berlin, newYork, lordHowe].flatMap((zone) => [
    spec(`every day in a gap, ${zone}`, { type: 3, interval: 1 }, { zone, start: "2026-01-05T02:15" }),
    spec(
      `every third day, ${zone}`,
      { type: 3, interval: 3 },
      { zone, start: "2026-02-01T02:30", day: (day, first) => (day.number - first.number) % 3 === 0 },
    ),
    spec(
      `Sundays, when clocks change, ${zone}`,
      { type: 4, interval: 1, dayOfWeek: "SUN" },
      { zone, start: "2026-01-01T02:20:10.500", day: ({ weekday }) => weekday === 7 },
    ),
    cron(`cron at 02:15 and 02:45, ${zone}`, { cronMinutes: "15,45", cronHours: 2 }, zone, {
      hours: [2],
      minutes: [15, 45],
    }),
    cron(
      `cron, each half of an hour, as the clock goes, ${zone}`,
      { cronMinutes: "*/30", month: "3,4,10-11", dayOfWeek: "SAT,SUN" },
      zone,
      { day: ({ month, weekday }) => [3, 4, 10, 11].includes(month) && weekday > 5, hours: "all", minutes: [0, 30] },
    ),
  ]),
  spec("every day at the second half past one", { type: 3, interval: 1 }, { zone: newYork, start: "2026-11-02T01:30" }),
  spec(
    "every day at midnight, where it may not exist",
    { type: 3, interval: 1 },
    { zone: "America/Santiago", start: "2026-01-01T00:00" },
  ),
  spec(
    "every day, without changes",
    { type: 3, interval: 1 },
    { zone: "Asia/Kolkata", start: "2026-01-01T12:34:56.789" },
  ),
  spec(
    "working days",
    { type: 4, interval: 1, dayOfWeek: "MON,TUE,WED,THU,FRI" },
    { zone: berlin, start: "2026-01-01T22:00", day: ({ weekday }) => weekday <= 5 },
  ),
  spec(
    "every second week, Monday and Wednesday",
    { type: 4, interval: 2, dayOfWeek: "mon, wed" },
    {
      zone: newYork,
      start: "2026-01-07T03:00",
      day: ({ weekday, number }, first) => [1, 3].includes(weekday) && weeksBetween(number, first.number) % 2 === 0,
    },
  ),
  spec(
    "every fifth week, from Saturday to Sunday",
    { type: 4, interval: 5, dayOfWeek: "SAT,SUN" },
    {
      zone: "UTC",
      start: "2026-01-04T03:00",
      day: ({ weekday, number }, first) => weekday > 5 && weeksBetween(number, first.number) % 5 === 0,
    },
  ),
  spec(
    "the 15th",
    { type: 5, interval: 1, dayOfMonth: 15 },
    { zone: berlin, start: "2026-01-16T02:30", day: ({ day }) => day === 15 },
  ),
  spec(
    "the 31st, where there is one",
    { type: 5, interval: 1, dayOfMonth: "31" },
    { zone: newYork, start: "2026-01-01T02:30", day: ({ day }) => day === 31 },
  ),
  spec(
    "the last of the month",
    { type: 5, interval: 1, dayOfMonth: -1 },
    { zone: berlin, start: "2026-01-01T02:30", day: ({ last }) => last },
  ),
  spec(
    "the last of each quarter",
    { type: 5, interval: 3, dayOfMonth: "-1" },
    { zone: lordHowe, start: "2026-03-01T00:00", day: ({ last, month }) => last && month % 3 === 0 },
  ),
  spec(
    "the 30th of every second month",
    { type: 5, interval: 2, dayOfMonth: 30 },
    { zone: "UTC", start: "2026-02-05T01:00", day: ({ day, month }) => day === 30 && month % 2 === 0 },
  ),
  spec(
    "each 29 March",
    { type: 6, interval: 1, month: 3, dayOfMonth: 29 },
    { zone: berlin, start: "2026-03-01T02:30", day: ({ day, month }) => day === 29 && month === 3 },
  ),
  spec(
    "the last of each February",
    { type: 6, interval: 1, month: "2", dayOfMonth: -1 },
    { zone: newYork, start: "2026-03-01T02:30", day: ({ last, month }) => last && month === 2 },
  ),
  spec(
    "1 July of every second year",
    { type: 6, interval: 2, month: 7, dayOfMonth: 1 },
    {
      zone: "UTC",
      start: "2025-07-02T08:00",
      day: ({ day, month, year }) => day === 1 && month === 7 && year % 2 === 1,
    },
  ),
  cron("cron: the first and the last at four hours", { cronMinutes: 0, cronHours: "*/6", dayOfMonth: "1,-1" }, berlin, {
    day: ({ day, last }) => day === 1 || last,
    hours: [0, 6, 12, 18],
    minutes: [0],
  }),
  cron(
    "cron: names and ranges",
    { cronMinutes: "5/25", cronHours: "8-17/3", month: "jan-mar,OCT", dayOfWeek: "MON-FRI" },
    newYork,
    {
      day: ({ weekday, month }) => weekday <= 5 && [1, 2, 3, 10].includes(month),
      hours: [8, 11, 14, 17],
      minutes: [5, 30, 55],
    },
  ),
  cron(
    "cron: days of the month or of the week",
    { cronMinutes: "30", cronHours: "1", dayOfMonth: "13", dayOfWeek: "5" },
    lordHowe,
    { day: ({ day, weekday }) => day === 13 || weekday === 5, hours: [1], minutes: [30] },
  ),
  cron("cron: Sunday is 0 and 7", { cronMinutes: "0", cronHours: "3", dayOfWeek: "0,7" }, berlin, {
    day: ({ weekday }) => weekday === 7,
    hours: [3],
    minutes: [0],
  }),
  cron("cron: a range that begins with Sunday", { cronMinutes: "0", cronHours: "3", dayOfWeek: "SUN-THU" }, berlin, {
    day: ({ weekday }) => weekday === 7 || weekday <= 4,
    hours: [3],
    minutes: [0],
  }),
  spec(
    "every week, by a range that begins with Sunday",
    { type: 4, interval: 1, dayOfWeek: "SUN-TUE" },
    { zone: berlin, start: "2026-01-04T22:00", day: ({ weekday }) => weekday === 7 || weekday <= 2 },
  ),
  cron("cron: one year", { cronMinutes: "0", cronHours: "?", dayOfMonth: "*", month: 6, year: 2027 }, "UTC", {
    day: ({ month, year }) => month === 6 && year === 2027,
    hours: "all",
    minutes: [0],
  }),
  cron(
    "cron: a leap day and what is not",
    { cronMinutes: 59, cronHours: 23, dayOfMonth: "29-31", month: "FEB,APR" },
    "America/Santiago",
    { day: ({ day, month }) => day >= 29 && [2, 4].includes(month), hours: [23], minutes: [59] },
  ),
  cron(
    "cron: each minute of an hour in the month of a change",
    { cronMinutes: "*", cronHours: "0", month: 4, dayOfWeek: "SUN" },
    "Africa/Cairo",
    {
      day: ({ month, weekday }) => month === 4 && weekday === 7,
      hours: [0],
      minutes: Array.from({ length: 60 }, (_, i) => i),
    },
  ),
];
