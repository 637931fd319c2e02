import { create, fromJson, type JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  RecurrenceSchema,
  RunMode,
  ScheduleSchema,
  WindowStatus,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { advance, notRun, type Rules, replan, startNow, type WindowProgress } from "../../src/maintenance/progress.ts";
import { windowPlanOf } from "../../src/maintenance/schedule.ts";
import { progressBy, runsAroundChange, type UpcomingRun, upcomingRuns } from "../../src/maintenance/upcoming.ts";
import { cases } from "../support/cases.ts";

const minuteMs = 60_000;
const nowMs = Date.UTC(2027, 2, 1, 12);

interface Spec {
  start: number;
  durationMin: number;
  zone?: string;
  recurrence?: JsonObject;
  skipNext?: number;
  runMode?: RunMode;
  status?: WindowStatus;
}

function courseOf(spec: Spec): { rules: Rules; progress: WindowProgress } {
  const { start, durationMin, zone = "UTC", recurrence, skipNext = 0 } = spec;
  const schedule = create(ScheduleSchema, {
    start: BigInt(start),
    duration: BigInt(durationMin * minuteMs),
    timeZone: zone,
  });
  if (recurrence) schedule.recurrence = fromJson(RecurrenceSchema, recurrence);
  const { runMode = RunMode.AUTO, status = WindowStatus.ENABLED } = spec;
  const rules = { plan: windowPlanOf(schedule), runMode, status };
  return { rules, progress: replan({ ...notRun, skipNext }, rules, rules.plan.durationMs, nowMs).progress };
}

function first(count: number, progress: WindowProgress, rules: Rules): UpcomingRun[] {
  const found: UpcomingRun[] = [];
  for (const run of upcomingRuns(progress, rules)) {
    if (run !== undefined) found.push(run);
    if (found.length === count) break;
  }
  return found;
}

const text = ({ startMs, endMs }: UpcomingRun, zone: string) =>
  [startMs, endMs]
    .map((ms) => ms && Temporal.Instant.fromEpochMilliseconds(ms).toString({ timeZone: zone, smallestUnit: "minute" }))
    .join(" to ");

describe("the runs that are foretold", () => {
  test("are those that begin and end when each minute is looked at", () => {
    const specs = fc.record({
      everyMin: fc.integer({ min: 1, max: 12 }),
      durationMin: fc.integer({ min: 1, max: 15 }),
      skipNext: fc.integer({ min: 0, max: 3 }),
      startsInMin: fc.integer({ min: -20, max: 20 }),
      startedByHand: fc.boolean(),
    });
    fc.assert(
      fc.property(specs, ({ everyMin, durationMin, skipNext, startsInMin, startedByHand }) => {
        const start = nowMs + startsInMin * minuteMs;
        const recurrence = { type: 1, interval: everyMin };
        const course = courseOf({ start, durationMin, skipNext, recurrence });
        const { rules } = course;
        const running = course.progress.runEndMs !== undefined;
        const progress = startedByHand && !running ? startNow(course.progress, rules, nowMs).progress : course.progress;
        const untilMs = nowMs + 120 * minuteMs;
        const seen: UpcomingRun[] = [];
        let now = progress;
        for (let at = nowMs; at <= untilMs; at += minuteMs) {
          const { runStartMs, runEndMs } = now;
          const moved = advance(now, rules, at);
          if (moved.steps.some(({ what }) => what === "end")) {
            seen.push({ startMs: runStartMs as number, endMs: runEndMs as number });
          }
          now = moved.progress;
        }
        const foretold = first(seen.length, progress, rules);
        expect(foretold).toEqual(seen);
      }),
      { numRuns: cases(200) },
    );
  });

  test("from a moment on are the same, without those before it", () => {
    const specs = fc.record({
      everyMin: fc.integer({ min: 1, max: 12 }),
      durationMin: fc.integer({ min: 1, max: 15 }),
      skipNext: fc.integer({ min: 0, max: 3 }),
      startsInMin: fc.integer({ min: -20, max: 20 }),
      startedByHand: fc.boolean(),
      fromMin: fc.integer({ min: 0, max: 100 }),
    });
    fc.assert(
      fc.property(specs, ({ everyMin, durationMin, skipNext, startsInMin, startedByHand, fromMin }) => {
        const start = nowMs + startsInMin * minuteMs;
        const { rules, progress: planned } = courseOf({
          start,
          durationMin,
          skipNext,
          recurrence: { type: 1, interval: everyMin },
        });
        const byHand = startedByHand && planned.runEndMs === undefined;
        const progress = byHand ? startNow(planned, rules, nowMs).progress : planned;
        const fromMs = nowMs + fromMin * minuteMs;
        const since = ({ endMs }: UpcomingRun) => endMs === undefined || endMs > fromMs;
        const all = first(120, progress, rules).filter(since);
        const found = first(120, progressBy(progress, rules, fromMs), rules).filter(since);
        expect(found.slice(0, all.length)).toEqual(all);
      }),
      { numRuns: cases(40) },
    );
  });

  test("a hundred years ahead are found without the millions before them", () => {
    const { rules, progress } = courseOf({ start: nowMs, durationMin: 1, recurrence: { type: 1, interval: 2 } });
    const fromMs = nowMs + 36_500 * 86_400_000;
    expect(first(1, progressBy(progress, rules, fromMs), rules)).toEqual([
      { startMs: fromMs, endMs: fromMs + minuteMs },
    ]);
  });

  test("of a window that never ends have no end", () => {
    const { rules, progress } = courseOf({ start: nowMs, durationMin: 90, recurrence: { type: 2, interval: 1 } });
    expect(first(5, progress, rules)).toEqual([{ startMs: nowMs, endMs: undefined }]);
  });

  test.each([
    ["is disabled", { status: WindowStatus.DISABLED }],
    ["is started by hand", { runMode: RunMode.MANUAL }],
  ])("are none of a window that %s", (_, more) => {
    const { rules, progress } = courseOf({
      start: nowMs,
      durationMin: 5,
      recurrence: { type: 3, interval: 1 },
      ...more,
    });
    expect(first(5, progress, rules)).toEqual([]);
  });

  test("are none of one that was, and the rest of one that was begun by hand", () => {
    const manual = courseOf({ start: nowMs, durationMin: 5, runMode: RunMode.MANUAL });
    const started = startNow(manual.progress, manual.rules, nowMs).progress;
    expect(first(5, started, manual.rules)).toEqual([{ startMs: nowMs, endMs: nowMs + 5 * minuteMs }]);
  });
});

describe("around a change of the clock", () => {
  const berlin = "Europe/Berlin";
  const at = (local: string) => Temporal.PlainDateTime.from(local).toZonedDateTime(berlin).epochMilliseconds;
  const daily = { type: 3, interval: 1 };

  async function around(spec: Spec, nth = 0) {
    const { rules, progress } = courseOf({ zone: berlin, ...spec });
    const next = first(nth + 1, progress, rules)[nth];
    const found = next && (await runsAroundChange(progress, rules, next, () => undefined));
    const zone = spec.zone ?? berlin;
    return (
      found && {
        at: found.at.toString({ timeZoneName: "never" }),
        before: found.before && text(found.before, zone),
        after: found.after.map((run) => text(run, zone)),
      }
    );
  }

  test("a nightly run keeps its time of the day, and lasts as long as before", async () => {
    expect(await around({ start: at("2027-03-01T22:00"), durationMin: 300, recurrence: daily })).toEqual({
      at: "2027-03-28T03:00:00+02:00",
      before: "2027-03-27T22:00+01:00 to 2027-03-28T04:00+02:00",
      after: ["2027-03-28T22:00+02:00 to 2027-03-29T03:00+02:00", "2027-03-29T22:00+02:00 to 2027-03-30T03:00+02:00"],
    });
  });

  test("a time that does not exist comes later that day alone", async () => {
    expect(
      await around({
        start: at("2027-03-01T22:00"),
        durationMin: 60,
        recurrence: { type: 7, cronMinutes: "30", cronHours: "2" },
      }),
    ).toEqual({
      at: "2027-03-28T03:00:00+02:00",
      before: "2027-03-27T02:30+01:00 to 2027-03-27T03:30+01:00",
      after: ["2027-03-28T03:30+02:00 to 2027-03-28T04:30+02:00", "2027-03-29T02:30+02:00 to 2027-03-29T03:30+02:00"],
    });
  });

  test("hours are time that passes: the time of the day moves", async () => {
    expect(
      (await around({ start: at("2027-03-01T22:00"), durationMin: 60, recurrence: { type: 2, interval: 24 } }))
        ?.after[0],
    ).toBe("2027-03-28T23:00+02:00 to 2027-03-29T00:00+02:00");
  });

  test("the last run before it, looked at from itself, is the one before it", async () => {
    const spec = { start: at("2027-03-01T22:00"), durationMin: 300, recurrence: daily };
    expect(await around(spec, 26)).toEqual(await around(spec));
  });

  test("of a window that never ends are looked for in turns with other work", async () => {
    const { rules, progress } = courseOf({ start: nowMs, durationMin: 1800, zone: berlin, recurrence: daily });
    const [next] = first(1, progress, rules) as [UpcomingRun];
    let turns = 0;
    await runsAroundChange(progress, rules, next, () => void turns++);
    expect(turns).toBeGreaterThan(1000);
  });

  test("a single run has itself before it, and a zone without changes has none", async () => {
    const start = at("2027-03-28T01:00");
    expect(await around({ start, durationMin: 240 })).toEqual({
      at: "2027-03-28T03:00:00+02:00",
      before: "2027-03-28T01:00+01:00 to 2027-03-28T06:00+02:00",
      after: [],
    });
    expect(await around({ start, durationMin: 240, zone: "Asia/Tokyo" })).toBeUndefined();
  });
});
