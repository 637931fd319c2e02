import fc from "fast-check";
import { expect, test } from "vitest";
import { beyond, keyTexts, keyTextsOf, type SortKey } from "../../../src/db/paging/keyset.ts";
import { cases } from "../../support/cases.ts";
import { testDatabase } from "../../support/database.ts";

const { sql } = await testDatabase();
const refused = new Error("no cursor");
const place = (...texts: (string | null)[]) => ({ texts, wrong: () => refused as never });

const typeNames = { bigint: "int8", float8: "float8", text: "text", boolean: "bool", bytea: "bytea" };
const key = (type: SortKey["type"], value = "null"): SortKey => ({
  expression: sql`(${value}::text::jsonb #>> '{}')::${sql(typeNames[type])}`,
  type,
  descending: false,
});

const numeric = fc
  .tuple(
    fc.constantFrom("", "-", "+", " "),
    fc.stringMatching(/^\d{0,22}$/),
    fc.stringMatching(/^(\.\d{0,20})?$/),
    fc.stringMatching(/^([eE][+-]?\d{0,5})?$/),
  )
  .map((parts) => parts.join(""));
const text = fc.oneof(
  { weight: 3, arbitrary: numeric },
  fc.string({ unit: "binary" }).filter((made) => !made.includes("\0")),
  fc.stringMatching(/^[0-9a-f]{0,9}$/),
  fc.constantFrom("true", "false", "t", "Infinity", "NaN", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "1e308", "1e309", "5e-324", "1e-400", "0e-400", "0x1p3", "1_000", "", "-0"),
); // biome-ignore format: a list of words

test.each<SortKey["type"]>(["bigint", "float8", "text", "boolean", "bytea"])(
  "forged keys of type %s are refused, or are ones that PostgreSQL reads",
  async (type) => {
    let taken = 0;
    for (const forged of fc.sample(text, { numRuns: 400, seed: 1 })) {
      for (const backward of [false, true]) {
        try {
          await sql`select ${beyond(sql, [key(type)], place(forged), backward)}`;
          taken += 1;
        } catch (error) {
          expect(error, forged).toBe(refused);
        }
      }
    }
    expect(taken).toBeGreaterThan(0);
  },
);

test("the keys of any row are taken", async () => {
  const rows = fc.sample(
    fc.record({
      bigint: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
      float8: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
      boolean: fc.boolean().map(String),
      text: fc.string({ unit: "grapheme" }).map((value) => JSON.stringify(value.replaceAll("\0", ""))),
    }),
    { numRuns: cases(300), seed: 2 },
  );
  for (const row of rows) {
    const keys = Object.entries(row).map(([type, value]) => key(type as SortKey["type"], value));
    const [made] = await sql<[{ texts: string[] }]>`select ${keyTexts(sql, keys)} as texts`;
    const [answer] = await sql<[{ after: boolean }]>`select ${beyond(sql, keys, place(...made.texts))} as after`;
    expect(answer.after).toBe(false);
  }
});

test("a list that goes by the texts themselves takes the same", () => {
  expect(keyTextsOf(place("a"), ["text"])).toEqual(["a"]);
  for (const texts of [[], ["a", "b"], [null]]) expect(() => keyTextsOf(place(...texts), ["text"])).toThrow(refused);
});

test("too few and too many keys, and none that has a value, are refused", () => {
  for (const texts of [[], ["1", "1"], [null]])
    expect(() => beyond(sql, [key("bigint")], place(...texts))).toThrow(refused);
});
