import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Pattern, parsePattern } from "../../src/clause/regex.ts";
import { testDatabase } from "../support/database.ts";
import { servedPatterns } from "./generated.ts";
import { subjects } from "./patterns.ts";
import { factor, seed } from "./seed.ts";

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
    const sources = fc.sample(servedPatterns, { numRuns: 500 * factor, seed });
    for (let from = 0; from < sources.length; from += 250) {
      const some = sources.slice(from, from + 250);
      const texts = fc.sample(subjects, { numRuns: 40, seed: seed + from });
      const parsed = some.map((source) => parsePattern(source, source));
      const there = await found(parsed, texts);
      const wrong = parsed.flatMap(({ matches, postgres }, i) =>
        texts.flatMap((text, j) =>
          matches(text) === there[i]?.[j] ? [] : [`${some[i]} on ${JSON.stringify(text)}: not as ${postgres} there`],
        ),
      );
      expect(wrong).toEqual([]);
    }
  });
});
