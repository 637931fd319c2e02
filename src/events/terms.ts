import type { Fragment } from "postgres";
import type { Literal } from "../clause/field.ts";
import { numericText } from "../clause/numeric-text.ts";
import type { Db } from "../db/connect.ts";

/** A key of a map, and the values one of which it has. */
export interface MapTerm {
  key: string;
  values: readonly Literal[];
}

/** A search by more values reads all occurrences sooner. */
const valuesMax = 1000;

/**
 * A condition that an index over maps answers: a key has one of its values, or a list with it. Undefined: the index does not show it,
 * as of a number, which equals texts of many spellings.
 */
export function hasTerm(db: Db, map: Fragment, terms: readonly MapTerm[]): Fragment | undefined {
  const all = terms.flatMap(({ values }) => values);
  if (all.length > valuesMax || all.some((value) => typeof value === "number")) return undefined;
  const conditions = terms.flatMap(({ key, values }) =>
    values.flatMap(spellings).map((value) => `$.${JSON.stringify(key)}[*] == ${value}`),
  );
  return conditions.length === 0
    ? (db`false` as Fragment)
    : (db`${map} @@ ${conditions.join(" || ")}::text::jsonpath` as Fragment);
}

/** How a value that equals this one may be written. */
function spellings(value: Literal): string[] {
  const number = typeof value === "string" ? numericText(value) : undefined;
  return [JSON.stringify(value), ...(number === undefined ? [] : [JSON.stringify(number)])];
}
