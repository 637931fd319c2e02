import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { expressionMemory } from "../../src/clause/expression.ts";
import {
  type LabelMatcher,
  labelMatcher,
  matcherText,
  mistakeText,
  readMatcher,
  readMatchers,
} from "../../src/clause/label-matcher.ts";
import { unpaced } from "../../src/event-loop.ts";
import { cases } from "../support/cases.ts";

const read = (text: string) => readMatcher(text) as LabelMatcher;
const mistake = (text: string) => {
  const found = readMatcher(text);
  return "column" in found ? mistakeText(found) : found;
};

test.each([
  ['a="b"', "a", "=", "b"],
  [' a\t=~ "b.*" ', "a", "=~", "b.*"],
  ["path=/var,/home", "path", "=", "/var,/home"],
  ["note=hello world  ", "note", "=", "hello world"],
  ["instance=~web-\\d+:9100", "instance", "=~", "web-\\d+:9100"],
  ["a={b}", "a", "=", "{b}"],
  ['a!="x\\ny\\"z\\\\\\q"', "a", "!=", 'x\ny"z\\\\q'],
  ["a=", "a", "=", ""],
  ['"k8s.pod ü"!~x', "k8s.pod ü", "!~", "x"],
])("%s is read as it is meant, and written so that it is read again", (text, name, operator, value) => {
  expect(read(text)).toMatchObject({ name, operator, value });
  expect(read(matcherText(read(text)))).toMatchObject({ name, operator, value });
});

test.each([
  ["(?i)crit.*", "CRITical", true],
  ["(?i:c)rit", "CRIT", false],
  ["(?s)a.b", "a\nb", true],
  ["a.b", "a\nb", false],
  ["(?P<x>a)|bc", "bc", true],
  ["\\p{Greek}+", "λόγος", true],
  ["\\Qa.b\\E", "a.b", true],
  ["\\Qa.b\\E", "axb", false],
  ["crit", "critical", false],
  ["a|b", "ab", false],
  ["a$|^b", "b", true],
])("the expression %s compares the whole of %j: %s", (expression, value, found) => {
  expect(read(`a=~${expression}`).matches(value, unpaced)).toBe(found);
  expect(read(`a!~${expression}`).matches(value, unpaced)).toBe(!found);
});

test.each([
  ['{a="b"}', "column 1: a matcher begins with the name of a label, in quotes if it is no word"],
  ["é=b", "column 1: a matcher begins with the name of a label, in quotes if it is no word"],
  ['""=b', "column 1: the name of a label is not empty"],
  ["a", "column 2: =, !=, =~ or !~ follows the name"],
  ['a="b', 'column 3: a value holds " only in quotes and after a backslash'],
  ['"𝒜"=b"c', 'column 6: a value holds " only in quotes and after a backslash'],
  ['a="b",c="d"', 'column 5: a value holds " only in quotes and after a backslash'],
  ["a=~𝒜𝒜(b", "column 6: missing closing )"],
  ['a=~"\\\\d\\"("', "column 10: missing closing )"],
  ["a=~b)c", "column 5: unexpected )"],
  ["a=~[(]b[c", "column 8: missing closing ]"],
  ["a=~[**]x**y**", "column 9: invalid nested repetition operator: **"],
  ["a=~\\Q.*", "column 4: missing closing )"],
  ["a=~(?P<x>b)(?P<1", "column 12: invalid named capture"],
  ["a=~x{2,1}", "column 5: invalid repeat count: {2,1}"],
  ["a=~bc\\", "column 6: trailing backslash at end of expression"],
  ["a=~(?:(?:a?){31}b?){31}", "column 4: the expression is too complex"],
  [`a=~(?:${"b".repeat(900)}){1000}`, "column 4: the expression is too complex"],
  ["a=~(?:(?:\\\\Qab|\\\\Ec){100}|[a-z]x){100}", "column 34: invalid repeat count: {100}"],
  [`a=~${"b".repeat(1001)}`, "column 4: an expression has at most 1000 characters"],
  [`a=${"b".repeat(2047)}`, "column 1: a matcher has at most 2048 characters"],
])("%s is refused at the code point that is wrong", (text, said) => {
  expect(mistake(text)).toBe(said);
});

test("what is too large is refused, and a mistake is found, without compiling anything", () => {
  const before = expressionMemory().count;
  const large = `(?:${"^|$|".repeat(120)}){1000}`;
  for (const text of [
    large,
    `(?:${"b".repeat(900)}){1000}`,
    `${"(?:a?){31}".repeat(32)}(`,
    "a{1000}",
    `(?i)[^${"B-\\x{1E943}".repeat(60)}]`,
  ])
    expect(readMatcher(`a=~${text}`)).toMatchObject({ column: expect.any(Number) });
  for (const text of ["\\d{1,3}(?:\\.\\d{1,3}){3}", "(?i)[[:alpha:]]{200}\\pL{200}", `${"a|".repeat(400)}b`])
    expect(readMatcher(`a=~${text}`)).not.toHaveProperty("reason");
  expect(expressionMemory().count).toBe(before);
});

test("a list's expressions count together, up to the first that is too much", () => {
  const each = `a=~${"b".repeat(990)}`;
  expect(readMatchers(Array(10).fill(each), "filter")).toHaveLength(10);
  expect(() => readMatchers([...Array(11).fill(each), "a=~("], "filter")).toThrow(
    "filter: the expressions are too complex together",
  );
  expect(() => readMatchers(Array(30).fill(`a=~(?i)${"\\pL".repeat(100)}`), "filter")).toThrow("too complex together");
});

test("a list names the place of each that is wrong", () => {
  expect(() => readMatchers(["a=b", "c", "d=~("], "silence.matchers")).toThrow(
    "silence.matchers[1]: column 2: =, !=, =~ or !~ follows the name; silence.matchers[2]: column 4: missing closing )",
  );
});

test("a value is compared with the whole expression, whatever its first characters mean", () => {
  const pieces = [
    "a",
    "b",
    "ab",
    "-",
    ".",
    "*",
    "+",
    "?",
    "{0}",
    "{2}",
    "|",
    "(",
    "(?i)",
    "(?:",
    ")",
    "[ab]",
    "\\Qa|",
    "\\E",
    "^",
    "$",
  ];
  const expressions = fc.array(fc.constantFrom(...pieces), { maxLength: 6 }).map((some) => some.join(""));
  const texts = fc.array(fc.constantFrom("a", "b", "A", "-", "|"), { maxLength: 4 }).map((some) => some.join(""));
  fc.assert(
    fc.property(expressions, texts, (expression, text) => {
      const matcher = labelMatcher({ name: "a", operator: "=~", value: expression });
      fc.pre(matcher.expression?.refusal === undefined);
      expect(matcher.matches(text, unpaced)).toBe(RE2JS.compile(`(?:${expression})`).testExact(text));
    }),
    { numRuns: cases(4000) },
  );
});
