import type { Fragment } from "postgres";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Db } from "../db/connect.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { unpaced } from "../event-loop.ts";
import { compareCodePoints } from "./code-point-order.ts";
import { compareExpression, stepsMax, tooManySteps } from "./expression.ts";
import type { Comparison, Literal } from "./field.ts";
import { fold, foldSql } from "./fold.ts";
import { numericText } from "./numeric-text.ts";
import type { Pattern } from "./regex.ts";

/** One element of a field in SQL, as each kind of value: null where it is of another kind, undefined where it never is of this one. */
export interface Element {
  text?: Fragment;
  /** The numbers alone. */
  number?: Fragment;
  /** The numbers, and the texts that read as one. */
  numeric?: Fragment;
  boolean?: Fragment;
  /** A number to compare with, in the type that an index on the field takes. */
  literal(value: number): Fragment;
}

/** What a value is, in the words of errors. */
export type ValueKind = "string" | "number" | "boolean";

/** How one operation reads its value and compares an element with it. Null in SQL counts as false. */
interface Rule<Value> {
  /** Kinds of value that it accepts; `list`: a list of them. */
  takes: readonly ValueKind[];
  list?: boolean;
  sql(db: Db, element: Element, value: Value): Fragment;
  holds(element: Literal, value: Value): boolean;
}

type ValueOf<O extends Comparison["operation"]> = Extract<Comparison, { operation: O }>["value"];

const scalar = ["string", "number", "boolean"] as const;
const ordered = ["string", "number"] as const;
const text = ["string"] as const;
const isText = (value: Literal) => typeof value === "string";

/**
 * What each operation means for one element, in SQL and in memory side by side. A field matches when one of its elements
 * does. A value of a kind that the operation does not know does not match.
 */
export const operationRules: { readonly [O in Comparison["operation"]]: Rule<ValueOf<O>> } = {
  [Operation.OP_EQUALS]: {
    takes: scalar,
    sql: (db, element, value) => compareSql(db, element, db`=`, value),
    holds: (element, value) => compare(element, value) === 0,
  },
  [Operation.OP_IN]: {
    takes: scalar,
    list: true,
    sql: (db, element, values) => amongSql(db, element, values),
    holds: (element, values) => values.some((value) => compare(element, value) === 0),
  },
  [Operation.OP_GREATER]: {
    takes: ordered,
    sql: (db, element, value) => compareSql(db, element, db`>`, value),
    holds: (element, value) => compare(element, value) > 0,
  },
  [Operation.OP_GREATER_OR_EQ]: {
    takes: ordered,
    sql: (db, element, value) => compareSql(db, element, db`>=`, value),
    holds: (element, value) => compare(element, value) >= 0,
  },
  [Operation.OP_LESS]: {
    takes: ordered,
    sql: (db, element, value) => compareSql(db, element, db`<`, value),
    holds: (element, value) => compare(element, value) < 0,
  },
  [Operation.OP_LESS_OR_EQ]: {
    takes: ordered,
    sql: (db, element, value) => compareSql(db, element, db`<=`, value),
    holds: (element, value) => compare(element, value) <= 0,
  },
  [Operation.OP_CONTAINS]: {
    takes: text,
    sql: (db, element, value) => like(db, element, `%${escaped(value)}%`),
    holds: (element, value) => isText(element) && element.includes(value),
  },
  [Operation.OP_STARTS_WITH]: {
    takes: text,
    sql: (db, element, value) => like(db, element, `${escaped(value)}%`),
    holds: (element, value) => isText(element) && element.startsWith(value),
  },
  [Operation.OP_END_WITH]: {
    takes: text,
    sql: (db, element, value) => like(db, element, `%${escaped(value)}`),
    holds: (element, value) => isText(element) && element.endsWith(value),
  },
  [Operation.OP_REGEX]: {
    takes: text,
    sql: (db, { text }, pattern: Pattern) => (text === undefined ? db`false` : expressionSql(db, text, pattern)),
    holds: (element, { expression }: Pattern) =>
      isText(element) && compareExpression(expression, element, unpaced) === true,
  },
  [Operation.OP_TEXT]: {
    takes: text,
    sql: (db, element, words) => allWords(db, element, words),
    holds: (element, words) => isText(element) && holdsAll(fold(element), words),
  },
};

/**
 * An expression over a text, in no more steps than in memory; a longer text ends the statement of a request with `tooManySteps`. It is
 * computed of the text, so that it is no constant, which would be evaluated beforehand.
 */
function expressionSql(db: Db, text: Fragment, { postgres, expression, beyond }: Pattern): Fragment {
  const matches = db`(${text}) collate "C" ~ ${postgres}::text`;
  const charactersMax = Math.floor(stepsMax / (expression.size?.weight ?? stepsMax));
  const otherwise =
    beyond === "refuse"
      ? db`(${tooManySteps} || left(${text}, 0))::boolean`
      : db`(${text}) is ${beyond === "match" ? db`not null` : db`null`}`;
  return db`case when octet_length(${text}) <= ${charactersMax}::int4 or length(${text}) <= ${charactersMax}::int4
    then ${matches} else ${otherwise} end`;
}

/** The operations that are the exact opposite of others. */
export const opposites = {
  [Operation.OP_NOT_EQUALS]: Operation.OP_EQUALS,
  [Operation.OP_NOT_CONTAINS]: Operation.OP_CONTAINS,
  [Operation.OP_NOT_IN]: Operation.OP_IN,
} as const;

/** Whether one element satisfies all comparisons of a condition. */
export function holds(element: Literal, condition: readonly Comparison[]): boolean {
  return condition.every(({ operation, value }) => (operationRules[operation] as Rule<unknown>).holds(element, value));
}

/** The same in SQL. */
export function holdsSql(db: Db, element: Element, condition: readonly Comparison[]): Fragment {
  const parts = condition.map(({ operation, value }) =>
    (operationRules[operation] as Rule<unknown>).sql(db, element, value),
  );
  return sqlJoin(db, parts, "and");
}

/** As a number below, at or above 0; NaN where the two do not compare. */
function compare(element: Literal, value: Literal): number {
  if (typeof element === "string" && typeof value === "string") return compareCodePoints(element, value);
  if (typeof element === "boolean" || typeof value === "boolean") return element === value ? 0 : Number.NaN;
  const left = typeof element === "string" ? numericText(element) : element;
  const right = typeof value === "string" ? numericText(value) : value;
  if (left === undefined || right === undefined) return Number.NaN;
  return left < right ? -1 : left > right ? 1 : 0;
}

function compareSql(db: Db, element: Element, operator: Fragment, value: Literal): Fragment {
  const parts: Fragment[] = [];
  if (typeof value === "boolean") {
    if (element.boolean) parts.push(db`${element.boolean} ${operator} ${value}::boolean`);
  } else if (typeof value === "number") {
    if (element.numeric) parts.push(db`${element.numeric} ${operator} ${element.literal(value)}`);
  } else {
    if (element.text) parts.push(db`(${element.text}) collate "C" ${operator} ${value}::text`);
    const number = numericText(value);
    if (element.number && number !== undefined)
      parts.push(db`${element.number} ${operator} ${element.literal(number)}`);
  }
  return sqlJoin(db, parts, "or");
}

function amongSql(db: Db, element: Element, values: readonly Literal[]): Fragment {
  const texts = values.filter((value) => typeof value === "string");
  const numbers = values.filter((value) => typeof value === "number");
  const readAsNumbers = texts.map(numericText).filter((value) => value !== undefined);
  const parts: Fragment[] = [];
  const list = (of: readonly Literal[]) =>
    db`jsonb_array_elements_text(${JSON.stringify(of)}::text::jsonb) as listed(value)`;
  const doubles = (of: readonly number[]) => db`any(array(select value::float8 from ${list(of)}))`;
  if (element.text && texts.length > 0)
    parts.push(db`(${element.text}) collate "C" = any(array(select value from ${list(texts)}))`);
  if (element.numeric && numbers.length > 0) parts.push(db`${element.numeric} = ${doubles(numbers)}`);
  if (element.number && readAsNumbers.length > 0) parts.push(db`${element.number} = ${doubles(readAsNumbers)}`);
  if (element.boolean)
    for (const value of [true, false])
      if (values.includes(value)) parts.push(db`${element.boolean} = ${value}::boolean`);
  return sqlJoin(db, parts, "or");
}

function like(db: Db, { text }: Element, pattern: string): Fragment {
  return text === undefined ? db`false` : db`(${text}) collate "C" like ${pattern}::text`;
}

function escaped(text: string): string {
  return text.replace(/[\\%_]/g, "\\$&");
}

function allWords(db: Db, { text }: Element, words: readonly string[]): Fragment {
  if (text === undefined) return db`false`;
  const patterns = JSON.stringify(words.map((word) => `%${escaped(word)}%`));
  const listed = db`array(select value from jsonb_array_elements_text(${patterns}::text::jsonb) as listed(value))`;
  return db`((${text}) is not null and ${foldSql(db, db`(${text})`)} like all (${listed}))`;
}

function holdsAll(folded: string, words: readonly string[]): boolean {
  return words.every((word) => folded.includes(word));
}
