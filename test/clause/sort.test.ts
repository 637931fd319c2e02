import fc from "fast-check";
import { expect, test } from "vitest";
import { compareCodePoints } from "../../src/clause/code-point-order.ts";
import type { FieldValue } from "../../src/clause/field.ts";
import { sortPieces } from "../../src/clause/sort.ts";
import { orderBy } from "../../src/db/paging/keyset.ts";
import { cases, seed } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { jsonValues } from "./generated.ts";

const { sql } = await testDatabase();

/** The first element of a list, or the value; undefined for what has no order. */
function ordered(value: FieldValue): string | number | boolean | undefined {
  const first = Array.isArray(value) ? value[0] : value;
  return ["string", "number", "boolean"].includes(typeof first) ? first : undefined;
}

function compare(a: FieldValue, b: FieldValue, descending: boolean): number {
  const [left, right] = [ordered(a), ordered(b)];
  if (left === undefined || right === undefined) return Number(left === undefined) - Number(right === undefined);
  const kinds = ["number", "string", "boolean"];
  const byKind = kinds.indexOf(typeof left) - kinds.indexOf(typeof right);
  const byValue = typeof left === "string" ? compareCodePoints(left, String(right)) : Number(left) - Number(right);
  return (byKind || byValue) * (descending ? -1 : 1);
}

test.each([false, true])(
  `numbers, then texts, then booleans, lists by their first element, missing last (descending: %s, seed ${seed})`,
  async (descending) => {
    const values = fc.sample(jsonValues, { numRuns: cases(500), seed });
    const rows = await sql<{ place: number }[]>`
    select place::int4 as place from jsonb_array_elements(${JSON.stringify(values)}::text::jsonb) with ordinality as listed(value, place)
    order by ${orderBy(sql, sortPieces(sql, { type: "json", sql: sql`value` }, descending))}, place`;
    const wanted = values.map((value, i) => ({ value, place: i + 1 }));
    wanted.sort((a, b) => compare(a.value, b.value, descending) || a.place - b.place);
    expect(rows.map(({ place }) => place)).toEqual(wanted.map(({ place }) => place));
  },
);
