import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";

// Capitals that Unicode knows since version 17, and PostgreSQL 18 does not.
const newer = /[\uA7CE\uA7D2\uA7D4\u{16EA0}-\u{16EB8}]/u;

/** The text with each code point in lower case, by Unicode's simple mapping: PostgreSQL's `pg_c_utf8`, code point by code point. */
export function fold(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII, all of it
  if (/^[\x00-\x7f]*$/.test(text)) return text.toLowerCase();
  let folded = "";
  for (const character of text) folded += newer.test(character) ? character : foldOne(character);
  return folded;
}

function foldOne(character: string): string {
  // The one capital whose full mapping has two code points.
  return character === "\u0130" ? "i" : character.toLowerCase();
}

/** The same in SQL. An expression index on it is used where it is spelled in the same way. */
export function foldSql(db: Db, text: Fragment): Fragment {
  return db`lower(${text} collate "pg_c_utf8")`;
}
