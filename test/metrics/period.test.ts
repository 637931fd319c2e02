import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { readPeriod } from "../../src/metrics/search.ts";

test.each([
  ["3600s", 3_600_000],
  ["500ms", 500],
  ["60m", 3_600_000],
  ["1h", 3_600_000],
  ["1d", 86_400_000],
  ["1.5h", 5_400_000],
  ["1.1s", 1100],
  ["0.001s", 1],
  ["36500d", 36_500 * 86_400_000],
])("%s is %i ms", (text, periodMs) => {
  expect(readPeriod(text, "downsample.period")).toBe(periodMs);
});

test.each([
  ["", "must be a number and ms, s, m, h or d, such as 3600s"],
  ["3600", "must be a number and ms, s, m, h or d, such as 3600s"],
  ["1w", "must be a number and ms, s, m, h or d, such as 3600s"],
  ["-1s", "must be a number and ms, s, m, h or d, such as 3600s"],
  ["1 s", "must be a number and ms, s, m, h or d, such as 3600s"],
  ["1e3s", "must be a number and ms, s, m, h or d, such as 3600s"],
  ["0s", "must be at least 1ms"],
  ["0.5ms", "must be a whole number of ms"],
  ["1.0001s", "must be a whole number of ms"],
  ["36501d", "must be at most 36500d"],
])("%j is refused: it %s", (text, rule) => {
  expect(() => readPeriod(text, "downsample.period")).toThrow(
    expect.objectContaining({ code: Code.InvalidArgument, rawMessage: `downsample.period: ${rule}` }),
  );
});
