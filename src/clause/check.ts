import type { Value } from "@bufbuild/protobuf/wkt";
import {
  type Clause,
  type Filter,
  type OneOf,
  Operation,
  OperationSchema,
  type Range,
} from "#gen/belfry/clause/v1/clause_pb.ts";
import { invalidField } from "../errors.ts";
import type { Comparison, Condition, Literal } from "./field.ts";
import { fold } from "./fold.ts";
import { type Kind, opposites, rules } from "./operations.ts";
import { parsePattern } from "./regex.ts";

const depthMax = 32;
const nodesMax = 1000;

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

/** The member that a clause holds, with its place in the request. */
export type Member = { [N in Name]: { case: N; value: NonNullable<Clause[N]>; path: string } }[Name];

/** The one member of a clause. @throws code 3 when there is none, or more than one. */
export function memberOf(clause: Clause, path: string): Member {
  const set = members.filter(([name]) => clause[name] !== undefined);
  const [name, jsonName] = set[0] ?? [];
  if (set.length !== 1 || name === undefined)
    throw invalidField(path, `must hold exactly one of ${members.map(([, jsonName]) => jsonName).join(", ")}`);
  return { case: name, value: clause[name], path: `${path}.${jsonName}` } as Member;
}

/**
 * Checks a clause against all rules of the language, for callers that store it; the compilers check by themselves.
 * @param path the clause's place in the request, for errors.
 * @throws code 3 with the path of what is wrong.
 */
export function checkClause(clause: Clause, path: string): void {
  let nodes = 0;
  walk(clause, path, 1);

  function walk(clause: Clause, path: string, depth: number): void {
    if (depth > depthMax) throw invalidField(path, `must not lie deeper than ${depthMax} clauses`);
    nodes += 1;
    if (nodes > nodesMax) throw invalidField(path, `must not be more than the ${nodesMax}th clause`);
    const member = memberOf(clause, path);
    switch (member.case) {
      case "allOf":
      case "anyOf":
        for (const [inner, place] of clausesOf(member)) walk(inner, place, depth + 1);
        break;
      case "noneOf": {
        const [inner, place] = clauseOf(member);
        walk(inner, place, depth + 1);
        break;
      }
      case "filter":
        readFilter(member.value, member.path);
        break;
      case "oneOf":
        readOneOf(member.value, member.path);
        break;
      case "range":
        readRange(member.value, member.path);
        break;
      case "withIds": {
        const { ids } = member.value;
        const wrong = ids.findIndex((id) => id.includes("\0"));
        if (wrong >= 0) refuseNul(ids[wrong] as string, `${member.path}.ids[${wrong}]`);
      }
    }
  }
}

/** The clauses of an `and` or `or`, each with its place. @throws code 3 when there is none. */
export function clausesOf({ value, path }: Extract<Member, { case: "allOf" | "anyOf" }>): [Clause, string][] {
  if (value.clauses.length === 0) throw invalidField(`${path}.clauses`, "must not be empty");
  return value.clauses.map((clause, i) => [clause, `${path}.clauses[${i}]`]);
}

/** The clause of a `not`, with its place. @throws code 3 when there is none. */
export function clauseOf({ value, path }: Extract<Member, { case: "noneOf" }>): [Clause, string] {
  if (value.clause === undefined) throw invalidField(`${path}.clause`, "is required");
  return [value.clause, `${path}.clause`];
}

/** What a filter, an `in` or a range asks: of which field, what, and whether the opposite is meant. */
export interface Question {
  field: string;
  /** `exists`: that the field has a value. */
  asks: Condition | "exists";
  negated: boolean;
}

/** @throws code 3 when the operation is unknown or does not fit the value. */
export function readFilter({ field, operation, value }: Filter, path: string): Question {
  checkField(field, `${path}.field`);
  if (OperationSchema.value[operation] === undefined || operation === Operation.OP_UNSPECIFIED) {
    const known = OperationSchema.values.slice(1).map(({ name, number }) => `${name} (${number})`);
    throw invalidField(`${path}.operation`, `must be one of ${known.join(", ")}`);
  }
  if (operation === Operation.OP_EXISTS) {
    return { field, asks: "exists", negated: !readFlag(value, `${path}.value`) };
  }
  const positive = (opposites as Partial<Record<number, Comparison["operation"]>>)[operation];
  const asked = positive ?? (operation as Comparison["operation"]);
  const { list, takes } = rules[asked];
  const operand = list ? readList(value, `${path}.value`) : readLiteral(value, takes, `${path}.value`);
  return { field, asks: [toComparison(asked, operand, `${path}.value`)], negated: positive !== undefined };
}

/** An `in` as a question: one of these values. @throws code 3 when a value is neither a string, a number nor a boolean. */
export function readOneOf({ field, values }: OneOf, path: string): Question {
  checkField(field, `${path}.field`);
  const { takes } = rules[Operation.OP_IN];
  const value = values.map((item, i) => readLiteral(item, takes, `${path}.values[${i}]`));
  return { field, asks: [{ operation: Operation.OP_IN, value }], negated: false };
}

const bounds = [
  ["gte", Operation.OP_GREATER_OR_EQ],
  ["gt", Operation.OP_GREATER],
  ["lte", Operation.OP_LESS_OR_EQ],
  ["lt", Operation.OP_LESS],
] as const;

/** @throws code 3 when there is no bound, or one that is neither a string nor a number. */
export function readRange(range: Range, path: string): Question {
  checkField(range.path, `${path}.path`);
  const asks = bounds.flatMap(([name, operation]): Comparison[] => {
    const bound = range[name];
    if (bound === undefined || bound.kind.case === "nullValue") return [];
    const value = readLiteral(bound, rules[operation].takes, `${path}.${name}`) as string | number;
    return [{ operation, value }];
  });
  if (asks.length === 0) throw invalidField(path, "must have at least one of gte, gt, lte, lt");
  return { field: range.path, asks, negated: false };
}

function toComparison(operation: Comparison["operation"], value: Literal | Literal[], path: string): Comparison {
  if (operation === Operation.OP_REGEX) return { operation, value: parsePattern(value as string, path) };
  if (operation === Operation.OP_TEXT) {
    const words = (value as string).split(/\s+/).filter((word) => word !== "");
    return { operation, value: words.map(fold) };
  }
  return { operation, value } as Comparison;
}

function checkField(field: string, path: string): void {
  if (field === "") throw invalidField(path, "is required");
  refuseNul(field, path);
}

function refuseNul(text: string, path: string): void {
  if (text.includes("\0")) throw invalidField(path, "must not contain NUL");
}

function readLiteral(value: Value | undefined, takes: readonly Kind[], path: string): Literal {
  const kind = value?.kind;
  if (kind?.case === "stringValue" && takes.includes("string")) {
    refuseNul(kind.value, path);
    // What PostgreSQL is sent in place of halves of a surrogate pair.
    return kind.value.toWellFormed();
  }
  if (kind?.case === "numberValue" && takes.includes("number")) {
    if (!Number.isFinite(kind.value)) throw invalidField(path, "must be finite");
    return kind.value;
  }
  if (kind?.case === "boolValue" && takes.includes("boolean")) return kind.value;
  const kinds = takes.map((name) => `a ${name}`);
  throw invalidField(path, `must be ${kinds.join(", ").replace(/, (?=[^,]*$)/, " or ")}`);
}

function readList(value: Value | undefined, path: string): Literal[] {
  const { takes } = rules[Operation.OP_IN];
  if (value?.kind.case !== "listValue") throw invalidField(path, "must be a list of strings, numbers and booleans");
  return value.kind.value.values.map((item, i) => readLiteral(item, takes, `${path}[${i}]`));
}

function readFlag(value: Value | undefined, path: string): boolean {
  const kind = value?.kind;
  if (kind === undefined || kind.case === undefined || kind.case === "nullValue") return true;
  if (kind.case !== "boolValue") throw invalidField(path, "must be true, false or left out");
  return kind.value;
}
