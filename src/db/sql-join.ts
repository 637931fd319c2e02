import type { Fragment } from "postgres";
import type { Db } from "./connect.ts";

/**
 * Parts of a statement as one: conditions joined by `and` or `or`, in brackets, or a list with commas. No condition at all is
 * true for `and`, false for `or`; a list and a union have at least one part.
 */
export function sqlJoin(db: Db, parts: readonly Fragment[], by: "and" | "or" | "," | "union all"): Fragment {
  const [first, ...others] = parts;
  if (first === undefined) return by === "or" ? db`false` : db`true`;
  const word = { and: db`and`, or: db`or`, ",": db`,`, "union all": db`union all` }[by];
  const all = others.length === 0 ? first : [first, ...others.map((part) => db`${word} ${part}`)];
  return by === "," || by === "union all" ? db`${all}` : db`(${all})`;
}
