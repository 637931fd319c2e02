import type { Fragment } from "postgres";
import type { Db } from "./connect.ts";

/**
 * Parts of a statement as one: conditions joined by `and` or `or`, in brackets, or a list with commas. No condition at all is
 * true for `and`, false for `or`; a list has at least one part.
 */
export function sqlJoin(db: Db, parts: readonly Fragment[], by: "and" | "or" | ","): Fragment {
  const [first, ...others] = parts;
  if (first === undefined) return by === "or" ? db`false` : db`true`;
  const word = by === "and" ? db`and` : by === "or" ? db`or` : db`,`;
  const all = others.length === 0 ? first : [first, ...others.map((part) => db`${word} ${part}`)];
  return by === "," ? db`${all}` : db`(${all})`;
}
