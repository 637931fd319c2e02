import { describe, expect, test } from "vitest";
import { nextTryMs, retryAfterMs } from "../../../src/notifications/kinds/retry.ts";

const nowMs = Date.UTC(2026, 10, 22, 10, 0, 0);
const year = 365 * 24 * 3600;

describe("a Retry-After", () => {
  test.each([
    ["30", 30_000],
    ["0", 0],
    [" 7 ", 7000],
    ["Sun, 22 Nov 2026 10:02:00 GMT", 120_000],
    ["Sunday, 22-Nov-26 10:02:00 GMT", 120_000],
    ["Sun, 22 Nov 2026 09:00:00 GMT", 0],
    [String(year), year * 1000],
    ["-5", undefined],
    ["soon", undefined],
    ["", undefined],
    ["1.5", undefined],
    ["1e3", undefined],
    ["99999999999999999999", undefined],
    [undefined, undefined],
  ])("%j", (header, wait) => expect(retryAfterMs(header, nowMs)).toBe(wait));
});

describe("the wait before the next try", () => {
  const middle = 0.5; // no jitter
  const steps = [5, 30, 120, 600, 1800, 3600, 10_800, 21_600];

  test.each(steps.map((seconds, i) => [i + 1, seconds]))("after try %i it is %i s", (all, seconds) => {
    expect(nextTryMs("retry", { all, slow: 0 }, undefined, middle)).toBe(seconds * 1000);
    expect(nextTryMs("retry", { all, slow: 0 }, undefined, 0)).toBe(seconds * 800);
    expect(nextTryMs("retry", { all, slow: 0 }, undefined, 1)).toBe(seconds * 1200);
  });

  test("after the ninth try there is none", () =>
    expect(nextTryMs("retry", { all: 9, slow: 0 }, undefined, middle)).toBeUndefined());

  test("the slow way has three steps, counted by themselves", () => {
    const waits = [1, 2, 3, 4].map((slow) => nextTryMs("slowly", { all: slow + 4, slow }, undefined, middle));
    expect(waits).toEqual([120_000, 600_000, 1_800_000, undefined]);
  });

  test.each(["fail", "disable"] as const)("%s: none", (course) =>
    expect(nextTryMs(course, { all: 1, slow: 0 }, 5000, middle)).toBeUndefined(),
  );

  test.each([
    ["less than the step: the step", 1, 0, 5000],
    ["more than the step: that", 1, 20_000, 22_000],
    ["a year: a minute, when twice the step is less", 1, year * 1000, 66_000],
    ["a year: twice the step, when that is more", 4, year * 1000, 1_320_000],
  ])("the receiver asks for %s", (_name, all, asked, wait) =>
    expect(nextTryMs("retry", { all, slow: 0 }, asked, middle)).toBe(wait),
  );

  test("never earlier than the receiver asks, whatever the jitter", () => {
    expect(nextTryMs("retry", { all: 1, slow: 0 }, 20_000, 0)).toBe(20_000);
    expect(nextTryMs("retry", { all: 2, slow: 0 }, 29_000, 0)).toBe(29_000);
  });

  test("a minute at least, where the product wants that", () => {
    expect(nextTryMs("minute", { all: 1, slow: 0 }, undefined, 0)).toBe(60_000);
    expect(nextTryMs("minute", { all: 3, slow: 0 }, undefined, 0)).toBe(96_000);
  });
});
