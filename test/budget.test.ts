import { expect, test } from "vitest";
import { budgetFor, overruns, sizesOf, unexplained } from "../scripts/budget.ts";

const sizes = sizesOf([
  ["src/server.ts", "a\nb\n"],
  ["src/events/get.ts", "a\n"],
  ["src/events/watch/queue.ts", "a\nb\nc\n"],
  ["migrations/0001_a.sql", "a\n"],
  ["docs/events.md", "a\n"],
]);

test("a file counts in its folder of the first two levels", () => {
  expect(Object.fromEntries(sizes)).toEqual({
    src: { lines: 6, files: 3 },
    "src/*": { lines: 2, files: 1 },
    "src/events": { lines: 4, files: 2 },
    migrations: { lines: 1, files: 1 },
  });
});

test("a folder beyond its bound is named with its size, the bound and what to do; so is one without a bound or without files", () => {
  const budget = {
    src: { lines: 6, files: 3 },
    "src/events": { lines: 3, files: 1 },
    migrations: { lines: 1, files: 1 },
    "src/gone": { lines: 1, files: 1 },
  };
  expect(overruns(sizes, budget)).toEqual([
    'src/*: has no bound. Add its line to budget.json, with a "why"',
    expect.stringMatching(
      /^src\/events: 4 lines, 3 allowed\. Delete or unite something in it; or raise "lines" in .* a "why"/,
    ),
    expect.stringMatching(/^src\/events: 2 files, 1 allowed\./),
    "src/gone: is gone. Remove its line from budget.json",
  ]);
});

test("a bound that was raised needs a new reason, a lower one needs none", () => {
  const before = {
    a: { lines: 10, files: 2, why: "a parser" },
    b: { lines: 10, files: 2 },
    c: { lines: 10, files: 2 },
  };
  expect(
    unexplained(before, {
      a: { lines: 11, files: 2, why: "a parser" },
      b: { lines: 10, files: 3, why: "the parser of a moved here" },
      c: { lines: 9, files: 2 },
      d: { lines: 1, files: 1 },
    }),
  ).toEqual([
    'a: its bound was raised in budget.json without a new "why"',
    'd: its bound was raised in budget.json without a new "why"',
  ]);
});

test("the printed budget holds, and keeps the reasons of bounds that are not lower", () => {
  const printed = budgetFor(sizes, {
    src: { lines: 1, files: 1, why: "first" },
    "src/events": { lines: 99, files: 9, why: "old" },
  });
  expect(overruns(sizes, printed)).toEqual([]);
  expect(printed.src?.why).toBe("first");
  expect(printed["src/events"]?.why).toBeUndefined();
});
