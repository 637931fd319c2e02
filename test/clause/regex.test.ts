import fc from "fast-check";
import { RE2JS } from "re2js";
import { describe, expect, test } from "vitest";
import { compareExpression } from "../../src/clause/expression.ts";
import { type Pattern, parsePattern } from "../../src/clause/regex.ts";
import { unpaced } from "../../src/event-loop.ts";
import { cases, seed } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { servedPatterns } from "./generated.ts";
import { subjects } from "./patterns.ts";

const { sql } = await testDatabase();

/** What PostgreSQL answers, for each pattern and each text. */
async function found(patterns: Pattern[], texts: string[]): Promise<boolean[][]> {
  const rows = await sql<{ found: boolean[] }[]>`
    select array(select subject.value collate "C" ~ pattern.value
      from jsonb_array_elements_text(${JSON.stringify(texts)}::text::jsonb) with ordinality as subject(value, place)
      order by subject.place) as found
    from jsonb_array_elements_text(${JSON.stringify(patterns.map(({ postgres }) => postgres))}::text::jsonb)
      with ordinality as pattern(value, place)
    order by pattern.place`;
  return rows.map((row) => row.found);
}

describe("both engines", () => {
  test(`answer alike for generated expressions of the allowed syntax (seed ${seed})`, {
    timeout: 300_000,
  }, async () => {
    const sources = fc.sample(servedPatterns, { numRuns: cases(500), seed });
    for (let from = 0; from < sources.length; from += 250) {
      const some = sources.slice(from, from + 250);
      const texts = fc.sample(subjects, { numRuns: 40, seed: seed + from });
      const parsed = some.map((source) => parsePattern(source, source));
      const there = await found(parsed, texts);
      const wrong = parsed.flatMap(({ expression, postgres }, i) =>
        texts.flatMap((text, j) =>
          compareExpression(expression, text, unpaced) === there[i]?.[j]
            ? []
            : [`${some[i]} on ${JSON.stringify(text)}: not as ${postgres} there`],
        ),
      );
      expect(wrong).toEqual([]);
    }
  });
});

describe("an expression that lets others take long", () => {
  const many = "a".repeat(50_000);
  const mixed = "ab ".repeat(15_000);
  const sources = [
    "(a+)+$",
    "(a|aa)+$",
    "(a|a?)+b",
    "(.*)*x",
    "(x+x+)+y",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(?:\\w+\\s*)+!",
    "(a|b)*a(a|b){200}!",
    "(?i)(?:[^!]{200}){4}!",
    "a{0,160}a{0,160}a{0,160}!",
    "(?:a?){60}a{60}!",
    "(?:a*b*){30}!",
  ];

  test.each(sources)("%s is answered by both engines soon", { timeout: 120_000 }, async (source) => {
    const pattern = parsePattern(source, "value");
    const texts = [many, mixed, `${many}!`];
    // A backtracking engine needs centuries.
    expect(await found([pattern], texts)).toEqual([
      texts.map((text) => RE2JS.compile(pattern.expression.source).test(text)),
    ]);
  });

  test.each([
    "(?:[^a]?){255}",
    "(?:(?:\\w?\\d?){15}){15}x",
    "(?:.*){255}x",
    "(?:\\b\\w){255}",
    "x{255}{2}",
    "(x{255}){4}",
    "(?:(?:a?b?)?){50}",
  ])("%s, for which PostgreSQL would build long, is refused", (source) => {
    expect(() => parsePattern(source, "value")).toThrow(/is too complex|a repetition of/);
  });

  test(`those that are allowed are built (seed ${seed})`, { timeout: 300_000 }, async () => {
    const atom = fc.constantFrom("a", "\\w", "[^a]", ".", "\\b", "^", "x|", "");
    const counts = fc.constantFrom("*", "+", "?", "{0,60}", "{15}", "{30}", "{2,100}", "{0,8}", "{5}");
    const { nest } = fc.letrec<{ nest: string }>((tie) => ({
      nest: fc.oneof(
        { maxDepth: 6 },
        atom,
        fc.tuple(tie("nest"), tie("nest")).map(([a, b]) => a + b),
        fc.tuple(tie("nest"), counts).map(([inner, count]) => `(${inner})${count}`),
      ),
    }));
    const served = fc.sample(nest, { numRuns: cases(2000), seed }).flatMap((source) => {
      try {
        return [parsePattern(source, "value")];
      } catch {
        return [];
      }
    });
    expect(served.length).toBeGreaterThan(0);
    for (let from = 0; from < served.length; from += 50) await found(served.slice(from, from + 50), ["", "xx a"]);
  });
});
