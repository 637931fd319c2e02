import { expect, test } from "vitest";
import { retryDelayMs } from "../../src/jobs/worker.ts";

test("a job that fails waits a second, then twice as long each time, up to a minute, never exactly as long as another", () => {
  for (const [failures, aboutMs] of [
    [1, 1000],
    [2, 2000],
    [5, 16_000],
    [7, 60_000],
    [1000, 60_000],
  ] as const) {
    const delays = Array.from({ length: 50 }, () => retryDelayMs(failures));
    for (const delay of delays) expect(Math.abs(delay - aboutMs)).toBeLessThanOrEqual(aboutMs * 0.2);
    expect(new Set(delays).size).toBeGreaterThan(1);
  }
});
