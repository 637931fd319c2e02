import type { Value } from "@bufbuild/protobuf/wkt";
import type { MaintenanceWindow, Recurrence, Schedule } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { RunMode } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { durationText } from "../ui/time.tsx";
import { clockText } from "./zone-clock.ts";

export const dayNames = [
  ["MON", "Monday"],
  ["TUE", "Tuesday"],
  ["WED", "Wednesday"],
  ["THU", "Thursday"],
  ["FRI", "Friday"],
  ["SAT", "Saturday"],
  ["SUN", "Sunday"],
] as const;

export const monthNames = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

/** A number or a text of a recurrence as text. */
export function partText(value: Value | undefined): string {
  const { kind } = value ?? {};
  return kind?.case === "numberValue" || kind?.case === "stringValue" ? String(kind.value) : "";
}

/** The days of a weekly recurrence, in order; undefined: it is written in another form than names. */
export function daysOf(text: string): string[] | undefined {
  const names = text
    .split(",")
    .map((each) => each.trim().toUpperCase())
    .filter(Boolean);
  const known = dayNames.filter(([short]) => names.includes(short)).map(([short]) => short);
  return known.length === new Set(names).size ? known : undefined;
}

const ordinal = (n: number) => {
  const tens = n % 100 > 10 && n % 100 < 14;
  return `${n}${tens ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th")}`;
};

const list = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** "every day", "every second day", "every 5th day". */
function every(interval: bigint, unit: string): string {
  const n = Number(interval);
  if (n === 1) return `every ${unit}`;
  return `every ${n === 2 ? "second" : n === 3 ? "third" : ordinal(n)} ${unit}`;
}

function monthDay(value: Value | undefined): string {
  const text = partText(value);
  if (text === "") return "a day to be chosen";
  return text === "-1" ? "the last day" : `the ${ordinal(Number(text))}`;
}

function monthName(value: Value | undefined): string {
  const text = partText(value);
  return text === "" ? "a month to be chosen" : (monthNames[Number(text) - 1] ?? text);
}

function cronWords(recurrence: Recurrence): string {
  const fields = [
    ["minutes", partText(recurrence.cronMinutes)],
    ["hours", partText(recurrence.cronHours)],
    ["days of the month", partText(recurrence.dayOfMonth)],
    ["months", partText(recurrence.month)],
    ["days of the week", recurrence.dayOfWeek],
    ["years", partText(recurrence.year)],
  ];
  const given = fields.filter(([, text]) => text !== "" && text !== "*").map((field) => field.join(" "));
  return `by cron: ${given.length === 0 ? "every minute" : given.join(", ")}`;
}

function howOften(recurrence: Recurrence): string {
  const { interval, dayOfWeek, dayOfMonth, month } = recurrence;
  switch (Number(recurrence.type)) {
    case 1:
      return interval === 1n ? "every minute" : `every ${interval} minutes`;
    case 2:
      return interval === 1n ? "every hour" : `every ${interval} hours`;
    case 3:
      return every(interval, "day");
    case 4: {
      const days = daysOf(dayOfWeek)?.map((short) => dayNames.find(([each]) => each === short)?.[1] ?? short);
      const named = days?.length === 0 ? "days to be chosen" : days ? list.format(days) : dayOfWeek;
      return interval === 1n ? `every ${named}` : `${every(interval, "week")} on ${named}`;
    }
    case 5:
      return `on ${monthDay(dayOfMonth)} of ${every(interval, "month")}`;
    case 6:
      return `on ${monthDay(dayOfMonth)} of ${monthName(month)}, ${every(interval, "year")}`;
    default:
      return cronWords(recurrence);
  }
}

const dayMs = 86_400_000;

/** The times of the day of a run, by the clock of its zone: "22:00–02:00", or how long it takes when that is longer than a day. */
function hours({ start, duration, timeZone }: Schedule): string {
  const startMs = Number(start);
  const durationMs = Number(duration);
  const from = clockText(startMs, timeZone).slice(11);
  if (durationMs >= dayMs) return `from ${from} for ${durationText(durationMs)}`;
  // The length is time that passes: around a change of the clock the end differs, which the list of runs shows.
  const wallMs = Date.parse(`${clockText(startMs, timeZone)}Z`);
  return `${from}–${clockText(wallMs + durationMs, "UTC").slice(11)}`;
}

/** When a window runs, in words: "every second week on Tuesday, 22:00–02:00, Europe/Berlin". */
export function recurrenceWords({ schedule, runMode }: MaintenanceWindow): string {
  if (schedule === undefined) return "";
  const { recurrence, duration } = schedule;
  const zone = schedule.timeZone || "UTC";
  const length = durationText(Number(duration));
  if (runMode === RunMode.MANUAL) return `when it is started, for ${length}`;
  const type = Number(recurrence?.type ?? 0n);
  if (recurrence === undefined || type === 0) {
    const [date, time] = clockText(Number(schedule.start), zone).split("T");
    return `once, ${date} ${time}, for ${length}, ${zone}`;
  }
  if (type <= 2 || type === 7) return `${howOften(recurrence)}, for ${length}, ${zone}`;
  return `${howOften(recurrence)}, ${hours(schedule)}, ${zone}`;
}
