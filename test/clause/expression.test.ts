import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import {
  answerOf,
  type ComparisonResult,
  compareExpression,
  expressionMemory,
  type Later,
  negated,
  readExpression,
  stepsMax,
} from "../../src/clause/expression.ts";
import { labelMatcher, matchersTrouble } from "../../src/clause/label-matcher.ts";
import { type Pace, paced, unpaced } from "../../src/event-loop.ts";
import { heldMs, turnMsMax } from "../support/loop-turns.ts";

const large = "(?:.*a.{20}){20}x";
const { size } = readExpression(large, true);
const charactersMax = Math.floor(stepsMax / (size?.weight ?? 0));

/** A text whose states are hard to foresee. */
function mixed(length: number, from = 1): string {
  let state = from;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return "ab"[(state >> 16) % 2];
  }).join("");
}

test.each([
  ["=~", "x", undefined],
  ["!~", "x", undefined],
  ["=", "x", false],
  ["!=", "x", true],
] as const)("a value that is too long for an expression is undecided by %s", (operator, _, expected) => {
  const matcher = labelMatcher({ name: "a", operator, value: large });
  expect(matcher.matches("a".repeat(charactersMax + 1), unpaced)).toBe(expected);
  expect(matcher.matches("a".repeat(charactersMax), unpaced)).toBe(operator === "!~" || operator === "!=");
});

test.each([
  [[true, undefined], false, undefined],
  [[false, undefined], false, false],
  [[undefined, false], false, false],
  [[undefined, true], true, true],
  [[false, undefined], true, undefined],
  [[], false, true],
] as const)("of %j with %s decisive the answer is %s, at once or later", async (answers, decisive, expected) => {
  const ask =
    (later: boolean) =>
    (answer: ComparisonResult): Later<ComparisonResult> =>
      later ? Promise.resolve(answer) : answer;
  expect(answerOf(answers, ask(false), decisive)).toBe(expected);
  expect(await answerOf(answers, ask(true), decisive)).toBe(expected);
  expect(await negated(answerOf(answers, ask(true), decisive))).toBe(expected === undefined ? undefined : !expected);
});

test("what is compared and compiled within the bounds takes no turn over 250 ms, and ends as re2js answers it", async () => {
  const hard = [
    large,
    "(?:a|b)*a(?:a|b){200}!?(?:a|b)*",
    ".*(?:\\pL|-){300}x",
    "^\\pL{460}",
    `(?i)${"\\pL".repeat(100)}`,
  ];
  for (const source of hard) {
    let again = source;
    let answer: ComparisonResult;
    let text = "";
    const held = await heldMs(async () => {
      // It is compiled anew.
      again = `(?:${again})`;
      const expression = readExpression(again, true);
      expect(expression.refusal).toBeUndefined();
      text = mixed(Math.floor(stepsMax / (expression.size?.weight ?? 1)));
      await sleep(2);
      answer = await compareExpression(expression, text, paced(undefined, `turns ${again}`));
    });
    expect(held.turn, source).toBeLessThan(turnMsMax);
    expect(answer).toBe(RE2JS.compile(again).testExact(text));
  }
});

test("all expressions of the process keep at most 64 MB, and those that gave theirs up still answer", async () => {
  const expressions = Array.from({ length: 150 }, (_, i) => readExpression(`(?:a|b)*a(?:a|b){150}[^${i}]`, true));
  const text = mixed(800);
  const answers = expressions.map((expression) => compareExpression(expression, text, unpaced));
  expect(expressionMemory().bytes).toBeLessThanOrEqual(64 * 1024 * 1024);
  expect(expressionMemory().bytes).toBeGreaterThan(40 * 1024 * 1024);
  expect(expressionMemory().count).toBeLessThan(150);
  const [first] = expressions;
  expect(first && compareExpression(first, text, unpaced)).toBe(answers[0]);
});

test("a tenant's comparisons wait once they have taken 4,000,000 steps in a second; another tenant's go on", async () => {
  const expression = readExpression(large, true);
  const own: Pace = paced(undefined, "greedy", { holdsNothing: true });
  const spent: number[] = [];
  const share = {
    turn: () => own.share?.turn(),
    spend: (steps: number) => {
      spent.push(steps);
      own.share?.spend(steps);
    },
  };
  const pace = Object.assign(() => undefined, { share });
  let waited = false;
  for (let i = 0; i < 20 && !waited; i += 1) {
    const answer = compareExpression(expression, mixed(charactersMax, i + 1), pace);
    const before = spent.length;
    if (answer instanceof Promise) {
      await turn();
      waited = spent.length === before;
      if (!waited) await answer;
    }
  }
  expect(waited).toBe(true);
  expect(spent.reduce((sum, steps) => sum + steps, 0)).toBeGreaterThan(stepsMax);
  const other = paced(undefined, "neighbour", { holdsNothing: true });
  expect(await compareExpression(readExpression("a+", true), "aaa", other)).toBe(true);
});

test("a comparison whose states are known takes a small part of the steps that bound it", () => {
  const spent: number[] = [];
  const pace = Object.assign(() => undefined, {
    share: { turn: () => undefined, spend: (steps: number) => void spent.push(steps) },
  });
  const expression = readExpression(".*refused.*", true);
  const text = "connection accepted ".repeat(1600);
  expect(compareExpression(expression, text, pace)).toBe(false);
  spent.length = 0;
  expect(compareExpression(expression, text, pace)).toBe(false);
  expect(spent).toEqual([text.length / 8]);
});

test("an expression that is stored and no longer accepted is compared within the bounds, and says so", () => {
  const stored = labelMatcher({ name: "a", operator: "=~", value: "(?:a|b){700}" });
  expect(stored.expression?.refusal?.reason).toBe("the expression is too complex");
  expect(stored.matches("ab".repeat(350), unpaced)).toBe(true);
  expect(stored.matches("ab".repeat(2000), unpaced)).toBeUndefined();
  expect(matchersTrouble([stored])).toBe(
    'a=~"(?:a|b){700}": the expression is too complex: it is compared with values of up to 1189 characters',
  );
  const names = Array.from({ length: 400 }, (_, i) => `host-${i}`).join("|");
  const listed = labelMatcher({ name: "a", operator: "=~", value: names });
  expect(listed.matches("host-7", unpaced)).toBe(true);
  expect(matchersTrouble([listed])).toContain(": the expression is too complex");
  const never = labelMatcher({ name: "a", operator: "!~", value: "(?:^|$|^|$){1000}{9}" });
  expect(never.matches("x", unpaced)).toBeUndefined();
});
