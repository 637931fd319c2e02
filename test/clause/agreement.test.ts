import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareCodePoints } from "../../src/clause/code-point-order.ts";
import { fold, foldSql } from "../../src/clause/fold.ts";
import { numericText, numericTextSql } from "../../src/clause/numeric-text.ts";
import { cases, nightly, seed } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { clauses, rowLists } from "./generated.ts";
import { clauseOf, matchedBySql, matchedInMemory } from "./rows.ts";

const { sql } = await testDatabase();

/** Names that an enumeration does not have are refused by both. */
function isTaken(clause: Parameters<typeof clauseOf>[0]): boolean {
  try {
    matchedInMemory([clauseOf(clause)], []);
    return true;
  } catch (error) {
    expect((error as Error).message).toContain("which is none of LOW (1), HIGH (2)");
    return false;
  }
}

describe("SQL and predicate", () => {
  const perStatement = 100;

  test(`match the same rows for generated clauses (seed ${seed})`, async () => {
    const kinds = new Set<string>();
    let pairs = 0;
    let matched = 0;
    for (let round = 0; round < cases(32); round++) {
      const some = fc.sample(clauses, { numRuns: perStatement, seed: seed + round }).filter(isTaken);
      const rows = fc.sample(rowLists, { numRuns: 1, seed: seed + round })[0] ?? [];
      const parsed = some.map(clauseOf);
      const there = await matchedBySql(sql, parsed, rows);
      const here = matchedInMemory(parsed, rows);
      const wrong = some.flatMap((clause, i) =>
        JSON.stringify(there[i]) === JSON.stringify(here[i])
          ? []
          : [{ clause: JSON.stringify(clause), rows: JSON.stringify(rows), there: there[i], here: here[i] }],
      );
      expect(wrong.slice(0, 3)).toEqual([]);
      for (const clause of some)
        for (const [word] of JSON.stringify(clause).matchAll(/OP_[A-Z_]+|"(?:and|or|not|in|range|withIds)":/g))
          kinds.add(word);
      pairs += some.length * rows.length;
      matched += there.flat().length;
    }
    // Neither all nor none, whatever the seed.
    expect(matched).toBeGreaterThan(0);
    expect(matched).toBeLessThan(pairs);
    // 15 operations and six kinds of clause beside the filter.
    expect(kinds.size).toBe(21);
  });
});

describe("lower case", () => {
  test("is PostgreSQL's for every code point", async () => {
    // Letters that have two cases lie in the first planes.
    const points = Array.from({ length: 0x10ffff }, (_, i) => i + 1).filter(
      (point) => (point < 0xd800 || point > 0xdfff) && (nightly || point < 0x20000 || point % 16 === 0),
    );
    const [row] = await sql<{ folded: string }[]>`
      select string_agg(${foldSql(sql, sql`chr(point)`)}, '' order by point) as folded
      from jsonb_array_elements_text(${JSON.stringify(points)}::text::jsonb) as listed(value), lateral (select value::int) as of(point)`;
    const folded = Array.from(row?.folded ?? "");
    expect(folded).toHaveLength(points.length);
    const wrong = points.filter((point, i) => fold(String.fromCodePoint(point)) !== folded[i]);
    expect(wrong.map((point) => point.toString(16))).toEqual([]);
  });

  test("is that of each code point in longer texts", async () => {
    const texts = fc
      .sample(fc.string({ unit: "binary" }), { numRuns: 500, seed })
      .map((text) => text.replaceAll("\0", "").toWellFormed());
    const rows = await sql<{ folded: string }[]>`
      select ${foldSql(sql, sql`value`)} as folded
      from jsonb_array_elements_text(${JSON.stringify(["ΣΊΣΥΦΟΣ", "İSTANBUL", ...texts])}::text::jsonb) with ordinality as listed(value, place)
      order by place`;
    expect(rows.map(({ folded }) => folded)).toEqual(["ΣΊΣΥΦΟΣ", "İSTANBUL", ...texts].map(fold));
  });
});

describe("numeric text", () => {
  test("is the same double in both, or none", async () => {
    const digits = fc.array(fc.constantFrom(..."0123456789.eE+- "), { maxLength: 8 }).map((list) => list.join(""));
    const spelled = fc.double({ noNaN: true, noDefaultInfinity: true }).map(String);
    const known = [
      "1e308",
      "1.8e308",
      "1e-323",
      "2e-324",
      "3e-324",
      "0e-999",
      "0x10",
      "Infinity",
      "NaN",
      "1_000",
      "٣",
      "",
      `1${"0".repeat(400)}`,
    ];
    const texts = [...known, ...fc.sample(fc.oneof(digits, spelled), { numRuns: 3000, seed })];
    const rows = await sql<{ number: number | null }[]>`
      select ${numericTextSql(sql, sql`value`)} as number
      from jsonb_array_elements_text(${JSON.stringify(texts)}::text::jsonb) with ordinality as listed(value, place) order by place`;
    const wrong = texts.filter((text, i) => !Object.is(numericText(text) ?? null, rows[i]?.number));
    expect(wrong).toEqual([]);
  });
});

test("texts are ordered by code point, as PostgreSQL orders them", async () => {
  const texts = fc
    .sample(fc.string({ unit: "binary", maxLength: 3 }), { numRuns: 1000, seed })
    .map((text) => text.replaceAll("\0", "").toWellFormed());
  const rows = await sql<{ value: string }[]>`
    select value from jsonb_array_elements_text(${JSON.stringify(texts)}::text::jsonb) as listed(value) order by value collate "C"`;
  expect(rows.map(({ value }) => value)).toEqual(texts.toSorted(compareCodePoints));
});
