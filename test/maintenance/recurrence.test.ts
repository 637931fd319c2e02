import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  RecurrenceSchema,
  RunMode,
  ScheduleSchema,
  WindowStatus,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { notRun, replan } from "../../src/maintenance/progress.ts";
import { lastStartMs, nextStartMs } from "../../src/maintenance/recurrence.ts";
import { windowPlanOf as planOfStored, readSchedule } from "../../src/maintenance/schedule.ts";
import { cases } from "../support/cases.ts";
import { oracleRuns, startOf } from "./oracle.ts";
import { specifications } from "./specifications.ts";

const fromMs = Date.UTC(2026, 0, 1);
const untilMs = Date.UTC(2028, 0, 1);

function scheduleOf(startMs: number, timeZone: string, recurrence: JsonObject | null) {
  const schedule = create(ScheduleSchema, { start: BigInt(startMs), duration: 60_000n, timeZone });
  if (recurrence !== null) schedule.recurrence = fromJson(RecurrenceSchema, recurrence);
  return schedule;
}

const read = (startMs: number, timeZone: string, recurrence: JsonObject) =>
  readSchedule(scheduleOf(startMs, timeZone, recurrence), "schedule");
const planOf = (startMs: number, timeZone: string, recurrence: JsonObject | null) =>
  planOfStored(scheduleOf(startMs, timeZone, recurrence));

function runsOf(plan: ReturnType<typeof planOf>, from: number, until: number) {
  const runs: number[] = [];
  for (let next = nextStartMs(plan, from); next !== undefined && next < until; next = nextStartMs(plan, next + 1)) {
    runs.push(next);
  }
  return runs;
}

const iso = (ms: number) => new Date(ms).toISOString();

describe("over two years the runs are those of an independent oracle", () => {
  test("there are forty specifications", () => expect(specifications.length).toBeGreaterThanOrEqual(40));

  test.each(specifications)("$name", ({ recurrence, oracle }) => {
    const plan = planOf(startOf(oracle), oracle.zone, recurrence);
    const runs = runsOf(plan, fromMs, untilMs);
    expect(runs.map(iso)).toEqual(oracleRuns(oracle, fromMs, untilMs).map(iso));
    const [first = 0] = runs;
    for (const at of [0, 1, runs.length >> 1, runs.length - 1].map((i) => runs[i] ?? first)) {
      expect(iso(lastStartMs(plan, first, at))).toBe(iso(at));
      expect(iso(lastStartMs(plan, first, at + 59_999))).toBe(iso(at));
    }
  });

  test("from any moment the next run is the first one that is not before it", () => {
    const known = specifications.map(({ recurrence, oracle }) => ({
      plan: planOf(startOf(oracle), oracle.zone, recurrence),
      runs: oracleRuns(oracle, fromMs, untilMs),
    }));
    const moment = fc.oneof(fc.integer({ min: fromMs, max: untilMs - 1 }), fc.constant(0));
    fc.assert(
      fc.property(fc.constantFrom(...known), moment, fc.nat(), ({ plan, runs }, any, pick) => {
        const at = any === 0 ? (runs[pick % runs.length] ?? fromMs) : any;
        const next = runs.find((run) => run >= at);
        if (next !== undefined) expect(nextStartMs(plan, at)).toBe(next);
      }),
      { numRuns: cases(300) },
    );
  });
});

describe("when the clock is changed", () => {
  // Written down by hand, from the published changes of 2026.
  test.each([
    ["Europe/Berlin", "2026-03-28T01:30Z", ["2026-03-28T01:30Z", "2026-03-29T01:30Z", "2026-03-30T00:30Z"]],
    ["Europe/Berlin", "2026-10-24T00:30Z", ["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"]],
    ["America/New_York", "2026-03-07T07:30Z", ["2026-03-07T07:30Z", "2026-03-08T07:30Z", "2026-03-09T06:30Z"]],
    ["America/New_York", "2026-10-31T05:30Z", ["2026-10-31T05:30Z", "2026-11-01T05:30Z", "2026-11-02T06:30Z"]],
    ["Australia/Lord_Howe", "2026-10-02T15:45Z", ["2026-10-02T15:45Z", "2026-10-03T15:45Z", "2026-10-04T15:15Z"]],
    ["Australia/Lord_Howe", "2026-04-03T14:45Z", ["2026-04-03T14:45Z", "2026-04-04T14:45Z", "2026-04-05T15:15Z"]],
  ])("a daily run keeps its time of the day: %s from %s", (timeZone, start, expected) => {
    const plan = planOf(Date.parse(start), timeZone, { type: 3, interval: 1 });
    const runs = runsOf(plan, Date.parse(start), Date.parse(start) + 3 * 86_400_000);
    expect(runs.slice(0, 3).map(iso)).toEqual(expected.map((text) => iso(Date.parse(text))));
  });

  test("the first run is at its own moment, even at the second of two such times", () => {
    const start = Date.parse("2026-10-25T01:30Z"); // 02:30 in Berlin, for the second time
    const plan = planOf(start, "Europe/Berlin", { type: 3, interval: 1 });
    expect(runsOf(plan, 0, start + 86_400_001).map(iso)).toEqual([iso(start), "2026-10-26T01:30:00.000Z"]);
  });
});

test("a window that has run each minute for years takes one step for all of them, and lasts as long as the last one", () => {
  const startMs = Date.UTC(2020, 0, 1);
  const plan = { ...planOf(startMs, "UTC", { type: 1, interval: 1 }), durationMs: 100 * 365 * 86_400_000 };
  const rules = { plan, runMode: RunMode.AUTO, status: WindowStatus.ENABLED };
  const nowMs = fromMs + 30_000;
  const { progress, steps } = replan(notRun, rules, plan.durationMs, nowMs);
  expect(steps.map(({ what }) => what)).toEqual(["start", "renewal"]);
  expect(progress).toMatchObject({
    runStartMs: startMs,
    runEndMs: fromMs + plan.durationMs,
    handledMs: fromMs,
    nextStartMs: fromMs + 60_000,
  });
});

describe("a run that is far away", () => {
  test("29 February of a century is found after its pause", () => {
    const plan = planOf(Date.UTC(2096, 2, 1), "UTC", { type: 6, interval: 1, month: 2, dayOfMonth: 29 });
    expect(nextStartMs(plan, 0)).toBe(Date.UTC(2104, 1, 29));
  });

  test("years go on in their steps", () => {
    const plan = planOf(Date.UTC(2026, 6, 1), "UTC", { type: 6, interval: 4, month: 7, dayOfMonth: 1 });
    expect(nextStartMs(plan, Date.UTC(2500, 0, 1))).toBe(Date.UTC(2502, 6, 1));
  });

  test("after the last year of a cron there is none", () => {
    const plan = planOf(Date.UTC(2026, 0, 1), "UTC", { type: 7, cronMinutes: 0, cronHours: 0, year: "2026,2028" });
    expect(nextStartMs(plan, Date.UTC(2027, 0, 1))).toBe(Date.UTC(2028, 0, 1));
    expect(nextStartMs(plan, Date.UTC(2029, 0, 1))).toBeUndefined();
  });

  test("without recurrence there is the one at the start", () => {
    const plan = planOf(1000, "UTC", null);
    expect(nextStartMs(plan, 0)).toBe(1000);
    expect(nextStartMs(plan, 1000)).toBe(1000);
    expect(nextStartMs(plan, 1001)).toBeUndefined();
  });
});

describe("what cannot be run is refused, with its place", () => {
  test.each<[string, JsonObject]>([
    ["interval", { type: 3 }],
    ["interval", { type: 1, interval: 0 }],
    ["interval", { type: 2, interval: 100_001 }],
    ["dayOfWeek", { type: 4, interval: 1 }],
    ["dayOfWeek", { type: 4, interval: 1, dayOfWeek: "MONDAY" }],
    ["dayOfWeek", { type: 4, interval: 1, dayOfWeek: "MON," }],
    ["dayOfMonth", { type: 5, interval: 1 }],
    ["dayOfMonth", { type: 5, interval: 1, dayOfMonth: 32 }],
    ["dayOfMonth", { type: 5, interval: 1, dayOfMonth: 1.5 }],
    ["dayOfMonth", { type: 5, interval: 1, dayOfMonth: [1] }],
    ["month", { type: 6, interval: 1, dayOfMonth: 1 }],
    ["month", { type: 6, interval: 1, dayOfMonth: 1, month: 13 }],
    ["cronMinutes", { type: 7, cronHours: 2 }],
    ["cronMinutes", { type: 7, cronMinutes: "60" }],
    ["cronMinutes", { type: 7, cronMinutes: "*/0" }],
    ["cronMinutes", { type: 7, cronMinutes: "30-10" }],
    ["cronHours", { type: 7, cronMinutes: 0, cronHours: "24" }],
    ["dayOfMonth", { type: 7, cronMinutes: 0, dayOfMonth: "0" }],
    ["month", { type: 7, cronMinutes: 0, month: "Juni" }],
    ["year", { type: 7, cronMinutes: 0, year: "26" }],
  ])("%s of %j", (field, recurrence) => {
    expect(read(0, "UTC", recurrence)).toEqual({
      broken: [
        {
          path: `schedule.recurrence.${field}`,
          rule: expect.stringMatching(/^(must be |is required)/),
          id: expect.any(Number),
        },
      ],
    });
  });

  test.each<[string, JsonObject]>([
    ["30 February", { type: 6, interval: 1, month: 2, dayOfMonth: 30 }],
    ["a cron without a date", { type: 7, cronMinutes: 0, month: 2, dayOfMonth: 31 }],
    ["a 29 February in years that have none", { type: 6, interval: 2, month: 2, dayOfMonth: 29 }],
  ])("%s never comes", (_, recurrence) => {
    expect(read(Date.UTC(2027, 0, 1), "UTC", recurrence)).toMatchObject({ broken: [{ path: "schedule.recurrence" }] });
  });

  test.each(["Mars/Olympus", "+01:00", "europe", "Europe/Berlin[u-ca=hebrew]"])("time zone %s", (timeZone) => {
    expect(readSchedule(scheduleOf(0, timeZone, null), "schedule")).toMatchObject({
      broken: [{ path: "schedule.timeZone" }],
    });
  });

  test("times out of bounds", () => {
    const schedule = create(ScheduleSchema, { start: -1n, duration: 0n });
    expect(readSchedule(schedule, "s")).toMatchObject({ broken: [{ path: "s.start" }, { path: "s.duration" }] });
  });
});
