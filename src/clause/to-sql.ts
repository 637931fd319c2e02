import type { Fragment } from "postgres";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Db } from "../db/connect.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { checkClause } from "./check.ts";
import type { Asked, Checked } from "./checked.ts";
import { checkNames, withNumbers } from "./enumeration.ts";
import type { Columns, Condition, SqlField } from "./field.ts";
import { numericTextSql } from "./numeric-text.ts";
import { type Element, holdsSql } from "./operations.ts";
import type { WhenTooCostly } from "./regex.ts";

/** A clause, or a part of one, as SQL. */
interface Compiled {
  /** Makes the general form, which reads the row alone; it is long, and not needed where an index answers exactly. */
  general(): Fragment;
  /** The form that indexes answer; where it holds, `rest` decides: undefined: the clause matches. */
  indexed?: Answered | undefined;
  /** Of ids, or an `and` of them and more: the ids, all lists of which hold a row's, and the rest; undefined: nothing. */
  byId?: { ids: readonly (readonly string[])[]; rest: (() => Fragment) | undefined } | undefined;
}

interface Answered {
  sources: readonly IndexSource[];
  rest: (() => Fragment) | undefined;
  few: boolean;
  broad: boolean;
}

/** A condition that one index answers by itself; undefined: PostgreSQL chooses among several. */
export interface IndexSource {
  index: string | undefined;
  sql(): Fragment;
}

/** How a clause is asked of rows. */
export interface Matching {
  /** True for the rows that the clause matches; for others it is false or null. */
  sql: Fragment;
  /** `sql` is asked of rows that are in one of these. None: of all. */
  sources: readonly IndexSource[];
}

/** How the rows that a clause matches are found. */
export interface RowSearch extends Matching {
  /** An index finds the rows, few as a rule, so nothing else should be looked through for them. */
  few: boolean;
  /** `sql` is asked only of rows whose id is in each of these lists: the caller looks them up. Undefined: of all. */
  ids: readonly (readonly string[])[] | undefined;
}

/**
 * SQL that is true for the rows that a clause matches; for others it is false or null. Values and names of the request
 * are parameters, never text.
 * @param path the clause's place in the request, for errors. @throws code 3 for what breaks a rule of the language.
 * @param beyond of a clause that is stored: what a comparison of too many steps comes to
 */
export function toSql(db: Db, clause: Clause, path: string, columns: Columns, beyond?: WhenTooCostly): Fragment {
  return together(db, toMatching(db, clause, path, columns, beyond));
}

const together = (db: Db, { sql, sources }: Matching): Fragment =>
  sources.length === 0 ? sql : db`(${inAny(db, sources)} and ${sql})`;

/** True for rows that are in one of the sources. */
export const inAny = (db: Db, sources: readonly IndexSource[]): Fragment =>
  sqlJoin(
    db,
    sources.map(({ sql }) => sql()),
    "or",
  );

/** The same, with what indexes answer by themselves. */
export function toMatching(db: Db, clause: Clause, path: string, columns: Columns, beyond?: WhenTooCostly): Matching {
  return written(db, compile(db, checkClause(clause, path, beyond), columns));
}

/** Both forms of a clause that has been checked; each is written when it is called. */
export function clauseForms(db: Db, clause: Checked, columns: Columns): Record<"general" | "indexed", () => Fragment> {
  const whole = compile(db, clause, columns);
  return { general: whole.general, indexed: () => together(db, written(db, whole)) };
}

/** The same of a clause that has been checked, for a caller that chooses how its rows are read. */
export function searchCondition(db: Db, clause: Checked, columns: Columns): RowSearch {
  const whole = compile(db, clause, columns);
  if (whole.byId === undefined) return { ...written(db, whole), ids: undefined };
  const { ids, rest } = whole.byId;
  return { sql: rest === undefined ? db`true` : db`(${rest()})`, few: true, sources: [], ids };
}

function written(db: Db, { general, indexed }: Compiled): Matching & { few: boolean } {
  if (indexed === undefined) return { sql: general(), few: false, sources: [] };
  const { sources, rest, few } = indexed;
  return { sql: rest === undefined ? db`true` : rest(), few, sources };
}

function compile(db: Db, clause: Checked, columns: Columns): Compiled {
  switch (clause.kind) {
    case "and":
      return allOf(
        db,
        clause.parts.map((part) => compile(db, part, columns)),
      );
    case "or":
      return anyOf(
        db,
        clause.parts.map((part) => compile(db, part, columns)),
      );
    case "not": {
      const { general } = compile(db, clause.part, columns);
      return { general: () => db`((${general()}) is not true)` };
    }
    case "field":
      return answer(db, clause, columns);
    case "label":
      throw new RangeError("queries ask for no labels");
    case "ids": {
      const { ids } = clause;
      const sql = () => (ids.length === 0 ? db`false` : columns.withIds(db, ids));
      return {
        general: sql,
        indexed: { sources: [{ index: "ids", sql }], rest: undefined, few: true, broad: false },
        byId: { ids: [ids], rest: undefined },
      };
    }
  }
}

function answer(db: Db, asked: Asked, columns: Columns): Compiled {
  const { field: key, asks } = asked;
  const field = columns.field(key);
  if (field === undefined) return { general: () => db`false` };
  checkNames(asked, field.numbers);
  return asks === "exists" ? { general: () => exists(db, field) } : satisfies(db, field, asks);
}

const every = (db: Db, forms: readonly (() => Fragment)[]): Fragment =>
  sqlJoin(
    db,
    forms.map((form) => form()),
    "and",
  );

// An index answers an `and` when it answers one of its clauses, and an `or` when it answers all of them. What an index
// answers stands apart from the rest: in the middle of an `or` it would be computed for every row.
function allOf(db: Db, parts: readonly Compiled[]): Compiled {
  const general = () =>
    every(
      db,
      parts.map((part) => part.general),
    );
  const led = parts.some(({ indexed }) => indexed?.few && !indexed.broad);
  const helpful = parts.filter(({ indexed }) => indexed && !(led && indexed.broad));
  const indexed = helpful.flatMap((part) => part.indexed ?? []);
  if (indexed.length === 0) return { general };
  const rest = parts.flatMap((part) => (helpful.includes(part) ? (part.indexed?.rest ?? []) : part.general));
  return {
    general,
    indexed: {
      sources: [inEach(db, indexed)],
      rest: rest.length === 0 ? undefined : () => every(db, rest),
      few: indexed.some(({ few }) => few),
      broad: !led && indexed.some(({ broad }) => broad),
    },
    byId: byIdOfAll(db, parts),
  };
}

/** Joins conditions that all must hold into one source, which names its index if it is the same. */
function inEach(db: Db, parts: readonly Answered[]): IndexSource {
  const all = parts.flatMap(({ sources }) => sources);
  const index = all.every((source) => source.index === all[0]?.index) ? all[0]?.index : undefined;
  return {
    index,
    sql: () =>
      every(
        db,
        parts.map(
          ({ sources }) =>
            () =>
              inAny(db, sources),
        ),
      ),
  };
}

/** Joins conditions of which one must hold into a source for each index. */
function inOne(db: Db, parts: readonly Answered[]): IndexSource[] {
  const all = parts.flatMap(({ sources }) => sources);
  const byIndex = Map.groupBy(all, ({ index }) => index);
  if (byIndex.has(undefined)) return [{ index: undefined, sql: () => inAny(db, all) }];
  return [...byIndex].map(([index, sources]) => ({ index, sql: () => inAny(db, sources) }));
}

function byIdOfAll(db: Db, parts: readonly Compiled[]): Compiled["byId"] {
  const ids = parts.flatMap(({ byId }) => byId?.ids ?? []);
  if (ids.length === 0) return undefined;
  // Rows that are looked up by id are no more than the ids: an index beside them would be joined with them, each with each.
  const rest = parts.flatMap(({ general, byId }) => (byId === undefined ? general : (byId.rest ?? [])));
  return { ids, rest: rest.length === 0 ? undefined : () => every(db, rest) };
}

function anyOf(db: Db, parts: readonly Compiled[]): Compiled {
  const general = () =>
    sqlJoin(
      db,
      parts.map((part) => part.general()),
      "or",
    );
  const indexed = parts.flatMap((part) => part.indexed ?? []);
  if (indexed.length < parts.length) return { general };
  return {
    general,
    indexed: {
      sources: inOne(db, indexed),
      rest: indexed.some(({ rest }) => rest !== undefined) ? general : undefined,
      few: indexed.some(({ few }) => few),
      broad: indexed.some(({ broad }) => broad),
    },
  };
}

function exists(db: Db, { type, sql }: SqlField): Fragment {
  return type === "json" ? db`jsonb_typeof(${sql(db)}) <> 'null'` : db`(${sql(db)}) is not null`;
}

function satisfies(db: Db, field: SqlField, asked: Condition): Compiled {
  const condition = withNumbers(field, asked);
  const general = () => generalForm(db, field, condition);
  const index = field.index?.(db, condition);
  return {
    general,
    indexed: index && {
      sources: [{ index: index.by, sql: index.sql }],
      rest: index.exact ? undefined : general,
      few: index.few ?? false,
      broad: index.broad ?? false,
    },
  };
}

function generalForm(db: Db, { type, sql: expression }: SqlField, condition: Condition): Fragment {
  const sql = expression(db);
  if (type !== "json") return holdsSql(db, columnElement(db, type, sql), condition);
  // The lax path yields the elements of a list, and of anything else the thing itself.
  return db`exists (select from jsonb_path_query(${sql}, '$[*]') as item(value)
    where ${holdsSql(db, jsonElement(db), condition)})`;
}

function columnElement(db: Db, type: "text" | "bigint" | "float8" | "boolean", sql: Fragment): Element {
  const literal = (value: number) => db`${value}::float8`;
  switch (type) {
    case "text":
      return { text: sql, numeric: numericTextSql(db, sql), literal };
    case "bigint":
      // An index on the column answers whole numbers only when they come as such.
      return {
        number: sql,
        numeric: sql,
        literal: (value) => (Number.isSafeInteger(value) ? db`${String(value)}::text::bigint` : literal(value)),
      };
    case "float8":
      return { number: sql, numeric: sql, literal };
    case "boolean":
      return { boolean: sql, literal };
  }
}

function jsonElement(db: Db): Element {
  const text = db`(item.value #>> '{}')`;
  const typeIs = (type: Fragment, then: Fragment) =>
    db`(case when jsonb_typeof(item.value) = ${type} then ${then} end)`;
  const asNumber = db`item.value::float8`;
  return {
    text: typeIs(db`'string'`, text),
    number: typeIs(db`'number'`, asNumber),
    numeric: db`(case jsonb_typeof(item.value) when 'number' then ${asNumber} when 'string' then ${numericTextSql(db, text)} end)`,
    boolean: typeIs(db`'boolean'`, db`item.value::boolean`),
    literal: (value) => db`${value}::float8`,
  };
}
