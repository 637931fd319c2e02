import type { Fragment } from "postgres";
import type { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Db } from "../db/connect.ts";
import type { Pattern } from "./regex.ts";

/** What a field may hold: any JSON. A null is the same as no value. */
export type FieldValue =
  | string
  | number
  | boolean
  | null
  | readonly FieldValue[]
  | { readonly [key: string]: FieldValue };

/** What an element of a field compares with. */
export type Literal = string | number | boolean;

/** One comparison of an element with a value that has been checked. */
export type Comparison =
  | { operation: typeof Operation.OP_EQUALS; value: Literal }
  | { operation: typeof Operation.OP_IN; value: readonly Literal[] }
  | {
      operation: typeof Operation.OP_CONTAINS | typeof Operation.OP_STARTS_WITH | typeof Operation.OP_END_WITH;
      value: string;
    }
  | {
      operation:
        | typeof Operation.OP_GREATER
        | typeof Operation.OP_GREATER_OR_EQ
        | typeof Operation.OP_LESS
        | typeof Operation.OP_LESS_OR_EQ;
      value: string | number;
    }
  | { operation: typeof Operation.OP_REGEX; value: Pattern }
  /** The words, in lower case as `fold` makes it. */
  | { operation: typeof Operation.OP_TEXT; value: readonly string[] };

/**
 * What a filter, an `in` or a `range` asks of a field: all comparisons hold for one of its elements. A filter and an `in`
 * make one comparison, a range one for each bound. The NOT operations and `not` are made of these by negation.
 */
export type Condition = readonly Comparison[];

/** What memory reads of one field of a caller's rows. */
export interface ValueField<Row> {
  /** The value; undefined: none. A bigint column gives a number. */
  get(row: Row): FieldValue | undefined;
  /** Numbers by the names that clauses may say instead, for enumerations. */
  numbers?: Readonly<Record<string, number>>;
}

/** What SQL reads of one field. */
export interface SqlField {
  /**
   * What `sql` yields. `json`: jsonb of any kind, lists by their elements. `text`: text, never read as a list.
   * `bigint`: any integer type. SQL null is no value, and so is the JSON null.
   */
  type: "json" | "text" | "bigint" | "float8" | "boolean";
  sql(db: Db): Fragment;
  numbers?: Readonly<Record<string, number>>;
  /**
   * SQL that an index answers and that every row which satisfies the condition satisfies; with `exact`, no other row
   * does. Statements have it at their top, once, and never under a negation, so it may be expensive to compute for a row.
   * Undefined: no index helps with this condition.
   */
  index?(db: Db, condition: Condition): Indexed | undefined;
}

/** One field of a caller's rows: the same value for both evaluators. */
export interface Field<Row> extends ValueField<Row>, SqlField {}

/**
 * A form of a condition that an index answers; exact: it is the condition itself; few: rarely true of many rows; broad:
 * the index must gather all of its rows, which may be many, so an `and` leaves it out beside others that are few.
 */
export interface Indexed {
  /** Written when it is called: an `and` leaves out parts that another one answers better. */
  sql(): Fragment;
  exact: boolean;
  few?: boolean;
  broad?: boolean;
  /** The index that answers it, for a caller that asks each index apart; `ids` finds what `withIds` names. */
  by?: string;
}

/** The values of a caller's rows, by which a clause over them becomes a predicate. */
export interface RowValues<Row> {
  /** The field of this key; undefined: there is none, so it is missing in every row. */
  field(key: string): ValueField<Row> | undefined;
  /** The ids that `withIds` may name the row by. */
  idsOf(row: Row): readonly string[];
}

/** The expressions of a caller's rows, by which a clause becomes SQL. */
export interface Columns {
  field(key: string): SqlField | undefined;
  /** SQL that holds for the rows of these ids; ids of a wrong form are unknown ones. */
  withIds(db: Db, ids: readonly string[]): Fragment;
}

/** Both: one description of the rows, whose sides agree. It holds no connection. */
export interface Resolver<Row> extends RowValues<Row>, Columns {
  field(key: string): Field<Row> | undefined;
}
