import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { expressionSize } from "../../src/clause/expression-size.ts";
import { cases } from "../support/cases.ts";

const pieces = [
  ..."ab|()[]^$.*+?{}-\\,:!k",
  "(?:",
  "(?i)",
  "(?i:",
  "(?-i)",
  "(?s-m:",
  "(?P<x>",
  "(?<y>",
  "(?",
  "{0}",
  "{1}",
  "{2}",
  "{0,3}",
  "{2,}",
  "{1,1}",
  "{11}",
  "{100}",
  "{01}",
  "{,2}",
  "{2,1}",
  "{123456789}",
  "*?",
  "[ab]",
  "[^a]",
  "[a-",
  "[z-a]",
  "[[:alpha:]]",
  "[[:nope:]]",
  "[\\x{0}-\\x{10ffff}]",
  "[^\\x{0}-\\x{10ffff}]",
  "\\d",
  "\\W",
  "\\b",
  "\\B",
  "\\A",
  "\\z",
  "\\C",
  "\\Q",
  "\\E",
  "\\Qa.\\E",
  "\\pL",
  "\\p{Greek}",
  "\\P{^Lu}",
  "\\p{nope}",
  "\\p",
  "\\x41",
  "\\x{1F600}",
  "\\x{110000}",
  "\\xg",
  "\\0",
  "\\12",
  "\\8",
  "\\_",
  "𝒜",
  "ab",
];
const random = fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((some) => some.join(""));
const { valid } = fc.letrec<{ valid: string }>((tie) => ({
  valid: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(
      "a",
      "ab",
      "ac",
      "",
      "^",
      "$",
      "\\b",
      ".",
      "[ab]",
      "\\d",
      "(?i)k",
      "[^\\x{0}-\\x{10ffff}]",
      "\\Qab\\E",
    ),
    fc.tuple(tie("valid"), tie("valid")).map(([a, b]) => a + b),
    fc.array(tie("valid"), { minLength: 2, maxLength: 5 }).map((some) => `(?:${some.join("|")})`),
    fc
      .tuple(
        fc.constantFrom("(", "(?:"),
        tie("valid"),
        fc.constantFrom("*", "+", "?", "{0}", "{1}", "{3}", "{0,2}", "{2,5}", "{2,}", "{0,}", "*?"),
      )
      .map(([open, inner, count]) => `${open}${inner})${count}`),
  ),
}));

/** What re2js says of an expression, which Alertmanager would put in a group. */
function compiled(expression: string): RE2JS | undefined {
  try {
    RE2JS.compile(expression);
    return RE2JS.compile(`(?:${expression})`);
  } catch {
    return undefined;
  }
}

test("the size of 100,000 random expressions is no smaller than that of their programs, and mistakes are those of re2js", () => {
  const either = fc.oneof(random, valid);
  let accepted = 0;
  fc.assert(
    fc.property(either, (expression) => {
      const size = expressionSize(expression);
      if (!("reason" in size) && size.instructions > 3000) return;
      const program = compiled(expression);
      expect([expression, "reason" in size]).toEqual([expression, program === undefined]);
      if ("reason" in size || program === undefined) return;
      accepted += 1;
      expect([expression, size.instructions]).toEqual([expression, Math.max(size.instructions, program.programSize())]);
      expect([expression, size.matchesEmpty]).toEqual([expression, program.testExact("")]);
    }),
    { numRuns: cases(100_000) },
  );
  expect(accepted).toBeGreaterThan(cases(20_000));
}, 300_000);

test.each([
  [".*refused.*", 13],
  ["a|b|c", 7],
  ["(?:^|$|^|$){1000}", 7002],
  ["(?:a?){31}", 64],
  ["(?:a*)*", 6],
  ["(a)(?P<x>b)", 8],
  ["x{2,}", 5],
  ["x{2,5}", 10],
])("%s takes %d instructions", (expression, instructions) => {
  expect(expressionSize(expression)).toMatchObject({ instructions });
});
