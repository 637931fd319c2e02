import type { Value } from "@bufbuild/protobuf/wkt";
import type { Fragment, ISql } from "postgres";
import { type Clause, type Filter, Operation, OperationSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { invalidField, unsupported } from "../errors.ts";
import type { Field, Resolver } from "./field.ts";

type Db = ISql<{ bigint: bigint }>;

const memberNames = { allOf: "and", anyOf: "or", noneOf: "not", oneOf: "in", range: "range" } as const;

// JSON's number grammar: what counts as a number when it stands in a text.
const numberPattern = "^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$";

function equals(db: Db, field: Field, value: Value | undefined, path: string): Fragment {
  const text = field.kind === "text" ? field.sql : db`(${field.object} ->> ${field.key})`;
  switch (value?.kind.case) {
    case "stringValue": {
      const wanted = value.kind.value;
      if (wanted.includes("\0")) throw invalidField(path, "must not contain NUL");
      // Containment, because that is what the index on the object answers.
      return field.kind === "text"
        ? db`${text} = ${wanted}`
        : db`${field.object} @> ${JSON.stringify({ [field.key]: wanted })}::text::jsonb`;
    }
    case "numberValue":
      return db`coalesce(case when ${text} ~ ${numberPattern} then ${text}::float8 = ${value.kind.value} end, false)`;
    case "boolValue":
      return db`false`;
    default:
      throw invalidField(path, "must be a string, a number or a boolean");
  }
}

function compare(db: Db, filter: Filter, path: string, resolver: Resolver): Fragment {
  if (filter.operation !== Operation.OP_EQUALS) {
    throw unsupported(
      `${path}.operation: ${OperationSchema.value[filter.operation]?.name ?? filter.operation} is not served yet`,
    );
  }
  const field = resolver.field(filter.field);
  if (field === undefined)
    throw unsupported(`${path}.field: filters on ${JSON.stringify(filter.field)} are not served yet`);
  return equals(db, field, filter.value, `${path}.value`);
}

/**
 * SQL that holds for the rows that a clause matches. Values and names of the request are parameters, never text.
 * @param path the clause's place in the request, for errors.
 * @throws code 3 for what breaks a rule of the language, code 12 for what is not served yet.
 */
export function toSql(db: Db, clause: Clause, path: string, resolver: Resolver): Fragment {
  const { kind } = clause;
  switch (kind.case) {
    case "withIds":
      return resolver.withIds(kind.value.ids);
    case "filter":
      return compare(db, kind.value, `${path}.filter`, resolver);
    case undefined:
      throw invalidField(path, "must hold exactly one of and, or, not, filter, in, range, withIds");
    default:
      throw unsupported(`${path}.${memberNames[kind.case]}: this clause is not served yet`);
  }
}
