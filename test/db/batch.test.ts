import fc from "fast-check";
import { expect, test } from "vitest";
import {
  bigintArray,
  boolArray,
  byteaArray,
  int4Array,
  jsonArray,
  parseArray,
  textArray,
  uuidArray,
} from "../../src/db/batch.ts";
import { cases } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();

const nullable = <T>(values: fc.Arbitrary<T>) => fc.array(fc.option(values), { maxLength: 40 });
// PostgreSQL's text has no NUL; a lone half of a surrogate pair is no text at all.
const text = fc.oneof(
  fc.string({ unit: "grapheme" }).map((value) => value.replaceAll("\0", "")),
  fc.constantFrom(
    "",
    "NULL",
    "null",
    '"',
    "\\",
    '\\"',
    "{",
    "}",
    ",",
    "{a,b}",
    " a ",
    "\n\t",
    "'",
    "$1",
    "é😀",
    "\u2028",
  ),
);
const json = fc
  .jsonValue({ noUnicodeString: false })
  .map((value) => JSON.parse(JSON.stringify(value))) // JSON has one zero
  .filter((value) => !/\\u0000|\\ud[89a-f]/i.test(JSON.stringify(value)));

async function holds<T>(values: fc.Arbitrary<(T | null)[]>, roundTrip: (values: (T | null)[]) => Promise<unknown[]>) {
  await fc.assert(
    fc.asyncProperty(values, async (list) => {
      expect(await roundTrip(list)).toEqual(list);
    }),
    { numRuns: cases(150) },
  );
}

const column = (rows: readonly Record<string, unknown>[]) => rows.map((row) => row.v);

test("texts arrive as they are, nulls and empty lists included", async () => {
  await holds(nullable(text), async (list) =>
    column(await sql`select v from unnest(${textArray(list)}::text[]) with ordinality as t(v, i) order by i`),
  );
});

test("JSON values arrive as they are; SQL null stands for null", async () => {
  await holds(nullable(json.filter((value) => value !== null)), async (list) =>
    column(await sql`select v from unnest(${jsonArray(list)}::jsonb[]) with ordinality as t(v, i) order by i`),
  );
});

test("bytes, numbers, booleans and UUIDs arrive as they are", async () => {
  const bytes = fc.uint8Array({ maxLength: 64 }).map((value) => Buffer.from(value));
  await holds(nullable(bytes), async (list) =>
    column(await sql`select v from unnest(${byteaArray(list)}::bytea[]) with ordinality as t(v, i) order by i`),
  );
  await holds(nullable(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })), async (list) =>
    column(await sql`select v from unnest(${bigintArray(list)}::bigint[]) with ordinality as t(v, i) order by i`),
  );
  await holds(nullable(fc.integer()), async (list) =>
    column(await sql`select v from unnest(${int4Array(list)}::int4[]) with ordinality as t(v, i) order by i`),
  );
  await holds(nullable(fc.boolean()), async (list) =>
    column(await sql`select v from unnest(${boolArray(list)}::boolean[]) with ordinality as t(v, i) order by i`),
  );
  await holds(nullable(fc.uuid()), async (list) =>
    column(await sql`select v from unnest(${uuidArray(list)}::uuid[]) with ordinality as t(v, i) order by i`),
  );
});

test("a part of a larger buffer sends its own bytes alone", () => {
  expect(byteaArray([new Uint8Array(Buffer.from("abcdef").buffer, Buffer.from("abcdef").byteOffset + 0, 0)])).toBe(
    '{"\\\\x"}',
  );
  const whole = new Uint8Array([1, 2, 3, 4]);
  expect(byteaArray([whole.subarray(1, 3)])).toBe('{"\\\\x0203"}');
});

test("arrays of an answer are read as PostgreSQL writes them", async () => {
  await holds(nullable(text), async (list) => {
    const [row] = await sql`select ${textArray(list)}::text[] as v, ${textArray(list)}::text[]::text as written`;
    expect(parseArray(row?.written as string, String)).toEqual(row?.v);
    return row?.v as unknown[];
  });
});
