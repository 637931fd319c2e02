import type { Fragment } from "postgres";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  checkClause,
  clauseOf,
  clausesOf,
  memberOf,
  type Question,
  readFilter,
  readOneOf,
  readRange,
} from "./check.ts";
import { withNumbers } from "./enumeration.ts";
import type { Condition, Db, Field, Resolver } from "./field.ts";
import { numericTextSql } from "./numeric-text.ts";
import { type Element, holdsSql } from "./operations.ts";

/**
 * SQL that is true for the rows that a clause matches; for others it is false or null. Values and names of the request
 * are parameters, never text.
 * @param path the clause's place in the request, for errors. @throws code 3 for what breaks a rule of the language.
 */
export function toSql<Row>(db: Db, clause: Clause, path: string, resolver: Resolver<Row>): Fragment {
  checkClause(clause, path);
  return compile(clause, path, true);

  function compile(clause: Clause, path: string, positive: boolean): Fragment {
    const member = memberOf(clause, path);
    switch (member.case) {
      case "allOf":
      case "anyOf": {
        const operator = member.case === "allOf" ? db`and` : db`or`;
        const parts = clausesOf(member).map(([inner, place]) => compile(inner, place, positive));
        return db`(${parts.map((part, i) => (i === 0 ? part : db`${operator} ${part}`))})`;
      }
      case "noneOf":
        return db`((${compile(...clauseOf(member), !positive)}) is not true)`;
      case "filter":
        return answer(readFilter(member.value, member.path), positive);
      case "oneOf":
        return answer(readOneOf(member.value, member.path), positive);
      case "range":
        return answer(readRange(member.value, member.path), positive);
      case "withIds":
        return member.value.ids.length === 0 ? db`false` : resolver.withIds(member.value.ids);
    }
  }

  function answer({ field: key, asks, negated }: Question, positive: boolean): Fragment {
    const field = resolver.field(key);
    if (field === undefined) return negated ? db`true` : db`false`;
    const holds = asks === "exists" ? exists(db, field) : satisfies(db, field, asks, positive !== negated);
    return negated ? db`((${holds}) is not true)` : holds;
  }
}

function exists<Row>(db: Db, { type, sql }: Field<Row>): Fragment {
  return type === "json" ? db`jsonb_typeof(${sql}) <> 'null'` : db`(${sql}) is not null`;
}

function satisfies<Row>(db: Db, field: Field<Row>, asked: Condition, positive: boolean): Fragment {
  const condition = withNumbers(field, asked);
  const exact = field.exact?.(condition);
  if (exact !== undefined) return db`(${exact})`;
  const general = generalForm(db, field, condition);
  const narrow = positive ? field.narrow?.(condition) : undefined;
  return narrow === undefined ? general : db`((${narrow}) and ${general})`;
}

function generalForm<Row>(db: Db, { type, sql }: Field<Row>, condition: Condition): Fragment {
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
