import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";

/** Negative, 0 or positive as `a` stands before, at or after `b` by code points, as `collate "C"` orders them. */
export function compareCodePoints(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** UTF-16 has the surrogates, which stand for the highest code points, before U+E000. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** The first text that stands after all texts with this beginning; undefined when there is none. */
function prefixEnd(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) as number);
  while (points.at(-1) === 0x10ffff) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
}

/** Whether a column in the order of code points begins with `prefix`: an index answers `like` only while its pattern is in the plan. */
export function beginsSql(db: Db, column: Fragment, prefix: string): Fragment {
  const end = prefixEnd(prefix);
  const from = db`${column} >= ${prefix}::text`;
  return end === undefined ? from : db`(${from} and ${column} < ${end}::text)`;
}
