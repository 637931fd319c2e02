import type { Fragment } from "postgres";
import { type EntitySort, FieldKind, Order } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { Columns, SqlField } from "../clause/field.ts";
import { sortPieces } from "../clause/sort.ts";
import type { Db } from "../db/connect.ts";
import type { SortKey } from "../db/paging/keyset.ts";
import { PREFIXES } from "./fields.ts";

const prefixes: Partial<Record<FieldKind, string>> = {
  [FieldKind.CORE_PROPERTY]: PREFIXES.coreProperty,
  [FieldKind.DIMENSION]: PREFIXES.dimension,
  [FieldKind.CUSTOM_PROPERTY]: PREFIXES.customProperty,
  [FieldKind.METADATA_FIELD]: PREFIXES.metadata,
};

/** The key of the field that a sort names, as clauses spell it; a prefix that repeats the kind is tolerated. */
function sortField({ fieldKind, field }: EntitySort): string {
  const prefix = prefixes[fieldKind] ?? "";
  return field.startsWith(prefix) ? field : prefix + field;
}

/** Columns that every row has a value of. */
const REQUIRED = ["name", "id", "createTime", "updateTime", "livenessTime", "productionState", "priority"];

/** The keys that order entities by a field: numbers before texts before booleans, a list by its first element. */
function keysOf(db: Db, name: string, { type, sql: expression }: SqlField, descending: boolean): SortKey[] {
  const required = REQUIRED.includes(name) ? { required: true as const } : {};
  // Of texts the beginning: they are in cursors. Names are short, and their index holds them whole.
  const sql = type === "text" && name !== "name" ? db`left(${expression(db)}, 255)` : expression(db);
  return sortPieces(db, { type, sql }, descending).map((piece) => ({ ...piece, ...required }));
}

/** The id by its bytes, which is another order than that of its text. */
const idKey = (db: Db, descending: boolean): SortKey => ({
  expression: db`id` as Fragment,
  type: "bytea",
  descending,
  required: true,
});

/** The keys that order entities as a search asks; in the end by name and id, which no two share. */
export function sortKeys(db: Db, sorts: readonly EntitySort[], columns: Columns): SortKey[] {
  const keys = sorts.flatMap((sort) => {
    const name = sortField(sort);
    const field = columns.field(name);
    return field === undefined ? [] : keysOf(db, name, field, sort.order === Order.DESCENDING);
  });
  // By the name alone the index serves one direction at once.
  const [only] = sorts;
  const onlyName = sorts.length === 1 && only !== undefined && sortField(only) === "name";
  if (onlyName) return [...keys, idKey(db, only.order === Order.DESCENDING)];
  return [...keys, { expression: db`name`, type: "text", descending: false, required: true }, idKey(db, false)];
}
