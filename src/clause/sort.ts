import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";
import type { SqlField } from "./field.ts";

/** One expression that rows are ordered by, as db/keyset.ts takes it: rows without a value come last either way. */
export interface SortPiece {
  expression: Fragment;
  type: "bigint" | "float8" | "text" | "boolean";
  descending: boolean;
}

/**
 * What rows are ordered by to be in the order of a field: numbers, then texts by code point, then booleans; a list by its
 * first element. Of texts within JSON the first 255 characters count, because what orders rows is in their cursors.
 */
export function sortPieces(
  db: Db,
  { type, sql }: { type: SqlField["type"]; sql: Fragment },
  descending: boolean,
): SortPiece[] {
  if (type === "text") return [{ expression: db`((${sql}) collate "C")`, type, descending }];
  if (type !== "json") return [{ expression: sql, type, descending }];
  const value = db`(case jsonb_typeof(${sql}) when 'array' then ${sql} -> 0 else ${sql} end)`;
  const rank = db`(case jsonb_typeof(${value}) when 'number' then 1 when 'string' then 2 when 'boolean' then 3 end)`;
  const number = db`(case jsonb_typeof(${value}) when 'number' then (${value})::float8 end)`;
  const text = db`(case when jsonb_typeof(${value}) in ('string', 'boolean') then left(${value} #>> '{}', 255) end)`;
  return [
    { expression: rank, type: "bigint", descending },
    { expression: number, type: "float8", descending },
    { expression: db`(${text} collate "C")`, type: "text", descending },
  ];
}
