import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";

/** JSON's grammar of numbers, for both evaluators. */
const grammar = "^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$";
const grammarRegExp = new RegExp(grammar);

/** The double that a text stands for; undefined when it is no number, or one beyond a double's range. */
export function numericText(text: string): number | undefined {
  if (!grammarRegExp.test(text)) return undefined;
  const value = Number(text);
  if (!Number.isFinite(value)) return undefined;
  // PostgreSQL refuses what underflows to zero.
  return value === 0 && /^[^eE]*[1-9]/.test(text) ? undefined : value;
}

/** The same in SQL: null when it is none. */
export function numericTextSql(db: Db, text: Fragment): Fragment {
  return db`case when ${text} ~ ${grammar} and pg_input_is_valid(${text}, 'float8') then (${text})::float8 end`;
}
