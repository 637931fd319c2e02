import { toJsonString } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Recurrence as RecurrenceMessage, Schedule } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import type { Broken } from "../rpc/constraint-rules.ts";
import { type Cron, type CronField, cronBytesMax, cronFields, readCronField, weekdaysOf } from "./cron.ts";
import { nextStartMs, type Recurrence, type Timing } from "./recurrence.ts";

/** When a window runs, and how long. */
export interface WindowPlan extends Timing {
  durationMs: number;
}

// The end of the year 9999, and a hundred years.
const START_MS_MAX = 253_402_300_799_999;
const DURATION_MS_MAX = 3_155_760_000_000;
const INTERVAL_MAX = 100_000;
const UNITS = ["minutes", "hours", "days", "weeks", "months", "years"] as const;

/** A schedule as it is run, or the rules that it breaks. `path` is its place in the request. */
export function readSchedule(schedule: Schedule, path: string): { plan: WindowPlan } | { broken: Broken[] } {
  const broken: Broken[] = [];
  const within = (value: bigint, name: string, min: number, max: number) => {
    if (value < min || value > max)
      broken.push({ path: `${path}.${name}`, rule: `must be ${min} to ${max}`, id: FieldRule.RANGE });
    return Number(value);
  };
  const startMs = within(schedule.start, "start", 0, START_MS_MAX);
  const durationMs = within(schedule.duration, "duration", 1, DURATION_MS_MAX);
  const timeZone = schedule.timeZone || "UTC";
  if (!isTimeZone(timeZone)) {
    broken.push({
      path: `${path}.timeZone`,
      rule: "must be the IANA name of a time zone, such as Europe/Berlin",
      id: FieldRule.SCHEDULE,
    });
  }
  const recurrence = schedule.recurrence && readRecurrence(schedule.recurrence, `${path}.recurrence`, broken);
  if (broken.length > 0) return { broken };
  const plan = { startMs, durationMs, timeZone, recurrence };
  if (nextStartMs(plan, startMs) === undefined) {
    return {
      broken: [
        {
          path: `${path}.recurrence`,
          rule: "must have a run: no date at or after start is like this",
          id: FieldRule.SCHEDULE,
        },
      ],
    };
  }
  return { plan };
}

/** Reads a schedule that is stored. One that a version before took and this one does not is not repeated. */
export function windowPlanOf(schedule: Schedule): WindowPlan {
  const read = readSchedule(schedule, "schedule");
  if ("plan" in read) return read.plan;
  const { start, duration } = schedule;
  return { startMs: Number(start), durationMs: Number(duration), timeZone: "UTC", recurrence: undefined };
}

function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Temporal.ZonedDateTime(0n, name);
    return true;
  } catch {
    return false;
  }
}

function readRecurrence(message: RecurrenceMessage, path: string, broken: Broken[]): Recurrence | undefined {
  const long = longFields(message);
  broken.push(
    ...long.map((name) => ({
      path: `${path}.${name}`,
      rule: `must be at most ${cronBytesMax} bytes`,
      id: FieldRule.SIZE,
    })),
  );
  const type = Number(message.type);
  if (type === 0 || long.length > 0) return undefined;
  if (type === 7) return { unit: "cron", cron: readCron(message, path, broken) };
  const refuse = (name: string, rule: string) =>
    void broken.push({ path: `${path}.${name}`, rule, id: FieldRule.SCHEDULE });
  const interval = Number(message.interval);
  const unit = UNITS[type - 1] as (typeof UNITS)[number];
  const refuseValue = (name: string, values: string) =>
    refuse(name, `must be 1 to ${values} where runs come by ${unit} (type ${type})`);
  if (interval < 1 || interval > INTERVAL_MAX) refuseValue("interval", `${INTERVAL_MAX}`);
  const whole = (name: "dayOfMonth" | "month", max: number, lastToo: boolean) => {
    const text = numberText(message[name]);
    const value = /^-?\d{1,2}$/.test(text) ? Number(text) : 0;
    if ((value >= 1 && value <= max) || (lastToo && value === -1)) return value;
    refuseValue(name, `${max}${lastToo ? ", or -1 for the last," : ""}`);
    return 1;
  };
  switch (unit) {
    case "weeks": {
      const days = readCronField(message.dayOfWeek, { ...cronFields.dayOfWeek, min: 1 });
      if (message.dayOfWeek.trim() !== "" && days !== "broken") {
        return { unit, interval, weekdays: days ?? new Uint8Array(8).fill(1) };
      }
      refuse("dayOfWeek", "must be days of the week, as in MON,WED, where runs come by weeks (type 4)");
      return undefined;
    }
    case "months":
      return { unit, interval, day: whole("dayOfMonth", 31, true) };
    case "years":
      return { unit, interval, month: whole("month", 12, false), day: whole("dayOfMonth", 31, true) };
    default:
      return { unit, interval };
  }
}

type CronName = keyof typeof cronFields;

const textIn = (message: RecurrenceMessage, name: CronName) =>
  name === "dayOfWeek" ? message.dayOfWeek.trim() : numberText(message[name]);

/** The fields whose values are longer than is taken, whether the type of the recurrence needs them or not. */
function longFields(message: RecurrenceMessage): CronName[] {
  const names = Object.keys(cronFields) as CronName[];
  return names.filter((name) => {
    const value = message[name];
    const { kind } = typeof value === "object" ? value : {};
    const nested = kind?.case === "listValue" || kind?.case === "structValue";
    const text = nested ? toJsonString(ValueSchema, value as Value) : textIn(message, name);
    return Buffer.byteLength(text) > cronBytesMax;
  });
}

const NONE = "none";

/** A number or a text as text; another value is `none`, which no rule takes. */
function numberText(value: Value | undefined): string {
  switch (value?.kind.case) {
    case "stringValue":
      return value.kind.value.trim();
    case "numberValue":
      return String(value.kind.value);
    case "nullValue":
    case undefined:
      return "";
    default:
      return NONE;
  }
}

function readCron(message: RecurrenceMessage, path: string, broken: Broken[]): Cron {
  const read = (name: CronName) => {
    const text = textIn(message, name);
    if (text === "" && name === "cronMinutes") {
      broken.push({
        path: `${path}.cronMinutes`,
        rule: "is required where runs come by cron (type 7)",
        id: FieldRule.REQUIRED,
      });
    }
    const field: CronField = cronFields[name];
    const values = text === "" ? undefined : readCronField(text, field);
    if (values !== "broken") return values;
    const last = name === "dayOfMonth" ? ", or -1 for the last" : "";
    const rule = `must be *, values from ${field.min} to ${field.max}${last}, ranges, steps or a list of them, as in cron`;
    broken.push({ path: `${path}.${name}`, rule, id: FieldRule.SCHEDULE });
    return undefined;
  };
  return {
    minutes: read("cronMinutes"),
    hours: read("cronHours"),
    days: read("dayOfMonth"),
    months: read("month"),
    weekdays: weekdaysOf(read("dayOfWeek")),
    years: read("year"),
  };
}
