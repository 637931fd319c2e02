import type { Value } from "@bufbuild/protobuf/wkt";
import {
  type Clause,
  type Filter,
  type OneOf,
  Operation,
  OperationSchema,
  type Range,
} from "#gen/belfry/clause/v1/clause_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../errors.ts";
import { beyondBounds, type Checked, type Counting, newCounting, not } from "./checked.ts";
import { countExpression, type ExpressionCount } from "./expression.ts";
import type { Comparison, Literal } from "./field.ts";
import { fold } from "./fold.ts";
import { operationRules, opposites, type ValueKind } from "./operations.ts";
import { parsePattern, type WhenTooCostly } from "./regex.ts";

const members = [
  ["allOf", "and"],
  ["anyOf", "or"],
  ["noneOf", "not"],
  ["filter", "filter"],
  ["oneOf", "in"],
  ["range", "range"],
  ["withIds", "withIds"],
] as const;

type Name = (typeof members)[number][0];
type Member = { [N in Name]: { case: N; value: NonNullable<Clause[N]>; path: string } }[Name];

/**
 * Checks a clause against all rules of the language, and reads it.
 * @param path the clause's place in the request, for errors.
 * @param beyond of a clause that is stored: what a comparison of too many steps comes to
 * @param expressions what else counts together with its expressions
 * @throws code 3 with the path of what is wrong.
 */
export function checkClause(
  clause: Clause,
  path: string,
  beyond: WhenTooCostly = "refuse",
  expressions?: ExpressionCount,
): Checked {
  return read(clause, path, 1, { ...newCounting(expressions), beyond });
}

/** How clauses are read: those that are stored have been counted. */
interface Reading extends Counting {
  readonly beyond: WhenTooCostly;
}

function read(clause: Clause, path: string, depth: number, counting: Reading): Checked {
  const rule = beyondBounds(counting, depth);
  if (rule !== undefined) throw invalidField(path, rule, FieldRule.CONDITION);
  const member = memberOf(clause, path);
  switch (member.case) {
    case "allOf":
    case "anyOf": {
      const { clauses } = member.value;
      const place = `${member.path}.clauses`;
      if (clauses.length === 0) throw invalidField(place, "must not be empty", FieldRule.REQUIRED);
      const parts = clauses.map((inner, i) => read(inner, `${place}[${i}]`, depth + 1, counting));
      return { kind: member.case === "allOf" ? "and" : "or", parts };
    }
    case "noneOf": {
      const place = `${member.path}.clause`;
      if (member.value.clause === undefined) throw invalidField(place, "is required", FieldRule.REQUIRED);
      return not(read(member.value.clause, place, depth + 1, counting));
    }
    case "filter":
      return readFilter(member.value, member.path, counting);
    case "oneOf":
      return readOneOf(member.value, member.path);
    case "range":
      return readRange(member.value, member.path);
    case "withIds": {
      const { ids } = member.value;
      const wrong = ids.findIndex((id) => id.includes("\0"));
      if (wrong >= 0) refuseNul(ids[wrong] as string, `${member.path}.ids[${wrong}]`);
      return { kind: "ids", ids };
    }
  }
}

/** The one member of a clause. @throws code 3 when there is none, or more than one. */
function memberOf(clause: Clause, path: string): Member {
  const set = members.filter(([name]) => clause[name] !== undefined);
  const [name, jsonName] = set[0] ?? [];
  if (set.length !== 1 || name === undefined)
    throw invalidField(
      path,
      `must hold exactly one of ${members.map(([, jsonName]) => jsonName).join(", ")}`,
      FieldRule.CONDITION,
    );
  return { case: name, value: clause[name], path: `${path}.${jsonName}` } as Member;
}

/** @throws code 3 when the operation is unknown or does not fit the value. */
function readFilter({ field, operation, value }: Filter, path: string, counting: Reading): Checked {
  const named = namedField(field, `${path}.field`);
  if (OperationSchema.value[operation] === undefined || operation === Operation.OP_UNSPECIFIED) {
    const known = OperationSchema.values.slice(1).map(({ name, number }) => `${name} (${number})`);
    throw invalidField(`${path}.operation`, `must be one of ${known.join(", ")}`, FieldRule.UNKNOWN_VALUE);
  }
  if (operation === Operation.OP_EXISTS) {
    const exists: Checked = { ...named, asks: "exists" };
    return readFlag(value, `${path}.value`) ? exists : not(exists);
  }
  const positive = (opposites as Partial<Record<number, Comparison["operation"]>>)[operation];
  const asked = positive ?? (operation as Comparison["operation"]);
  const { list, takes } = operationRules[asked];
  const operand = list ? readList(value, `${path}.value`) : readLiteral(value, takes, `${path}.value`);
  const checked: Checked = { ...named, asks: [toComparison(asked, operand, `${path}.value`, counting)] };
  return positive === undefined ? checked : not(checked);
}

/** @throws code 3 when a value is neither a string, a number nor a boolean. */
function readOneOf({ field, values }: OneOf, path: string): Checked {
  const named = namedField(field, `${path}.field`);
  const { takes } = operationRules[Operation.OP_IN];
  const value = values.map((item, i) => readLiteral(item, takes, `${path}.values[${i}]`));
  return { ...named, asks: [{ operation: Operation.OP_IN, value }] };
}

const bounds = [
  ["gte", Operation.OP_GREATER_OR_EQ],
  ["gt", Operation.OP_GREATER],
  ["lte", Operation.OP_LESS_OR_EQ],
  ["lt", Operation.OP_LESS],
] as const;

/** @throws code 3 when there is no bound, or one that is neither a string nor a number. */
function readRange(range: Range, path: string): Checked {
  const named = namedField(range.path, `${path}.path`);
  const asks = bounds.flatMap(([name, operation]): Comparison[] => {
    const bound = range[name];
    if (bound === undefined || bound.kind.case === "nullValue") return [];
    const value = readLiteral(bound, operationRules[operation].takes, `${path}.${name}`) as string | number;
    return [{ operation, value }];
  });
  if (asks.length === 0) throw invalidField(path, "must have at least one of gte, gt, lte, lt", FieldRule.REQUIRED);
  return { ...named, asks };
}

function toComparison(
  operation: Comparison["operation"],
  value: Literal | Literal[],
  path: string,
  { beyond, expressions }: Reading,
): Comparison {
  if (operation === Operation.OP_REGEX) {
    const pattern = parsePattern(value as string, path, beyond);
    if (beyond === "refuse") countExpression(expressions, pattern.expression, path);
    return { operation, value: pattern };
  }
  if (operation === Operation.OP_TEXT) {
    const words = (value as string).split(/\s+/).filter((word) => word !== "");
    return { operation, value: words.map(fold) };
  }
  return { operation, value } as Comparison;
}

/** The part of a checked clause that says of which field something is asked. */
export function namedField(field: string, path: string) {
  if (field === "") throw invalidField(path, "is required", FieldRule.REQUIRED);
  refuseNul(field, path);
  return { kind: "field" as const, field, path };
}

/** @throws code 3 */
export function refuseNul(text: string, path: string): void {
  if (text.includes("\0")) throw invalidField(path, "must not contain NUL", FieldRule.STRING_NOT_CONTAINS);
}

function readLiteral(value: Value | undefined, takes: readonly ValueKind[], path: string): Literal {
  const kind = value?.kind;
  if (kind?.case === "stringValue" && takes.includes("string")) {
    refuseNul(kind.value, path);
    // What PostgreSQL is sent in place of halves of a surrogate pair.
    return kind.value.toWellFormed();
  }
  if (kind?.case === "numberValue" && takes.includes("number")) {
    if (!Number.isFinite(kind.value)) throw invalidField(path, "must be finite", FieldRule.DOUBLE_FINITE);
    return kind.value;
  }
  if (kind?.case === "boolValue" && takes.includes("boolean")) return kind.value;
  const kinds = takes.map((name) => `a ${name}`);
  throw invalidField(path, `must be ${kinds.join(", ").replace(/, (?=[^,]*$)/, " or ")}`, FieldRule.CONDITION);
}

function readList(value: Value | undefined, path: string): Literal[] {
  const { takes } = operationRules[Operation.OP_IN];
  if (value?.kind.case !== "listValue")
    throw invalidField(path, "must be a list of strings, numbers and booleans", FieldRule.CONDITION);
  return value.kind.value.values.map((item, i) => readLiteral(item, takes, `${path}[${i}]`));
}

function readFlag(value: Value | undefined, path: string): boolean {
  const kind = value?.kind;
  if (kind === undefined || kind.case === undefined || kind.case === "nullValue") return true;
  if (kind.case !== "boolValue") throw invalidField(path, "must be true, false or left out", FieldRule.CONDITION);
  return kind.value;
}
