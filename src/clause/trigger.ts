import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type {
  TriggerClause,
  TriggerComparison,
  TriggerOneOf,
  TriggerText,
  TriggerValue,
} from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import { invalidField } from "../errors.ts";
import { namedField, refuseNul } from "./check.ts";
import { askedOf, beyondBounds, type Checked, type Counting, not } from "./checked.ts";
import { withNumbers } from "./enumeration.ts";
import type { Comparison, FieldValue, Literal, ValueField, Values } from "./field.ts";
import { fold } from "./fold.ts";
import { numericText } from "./numeric-text.ts";
import { rules } from "./operations.ts";
import { elements, type Predicate, predicateOf } from "./to-predicate.ts";

const jsonNames: Partial<Record<string, string>> = { allOf: "and", anyOf: "or", noneOf: "not", oneOf: "in" };

/** A field with one of its elements, as a key of an index: what compares as equal has a key in common. */
export interface Equality {
  field: string;
  key: string;
}

/** A trigger's clause, ready to be asked of rows. */
export interface CompiledTrigger<Row> {
  matches: Predicate<Row>;
  /** The fields that its comparisons name. */
  fields: ReadonlySet<string>;
  /**
   * Of these equalities every row that matches satisfies at least one, as `equalityKeys` finds them in the row. None: no row
   * matches. Undefined: a row may match without any.
   */
  needs: readonly Equality[] | undefined;
}

/**
 * Checks a trigger's clause against all rules of its language. @param path the clause's place in the request, for errors.
 * @throws code 3 with the path of what is wrong.
 */
export function checkTrigger(clause: TriggerClause | undefined, path: string): void {
  readTrigger(clause, path);
}

/**
 * A trigger's clause as a predicate, and what an index finds it by. It holds no connection; text is compared by each code
 * point in lower case. @throws as `checkTrigger`
 */
export function compileTrigger<Row>(
  clause: TriggerClause | undefined,
  path: string,
  values: Values<Row>,
): CompiledTrigger<Row> {
  const checked = readTrigger(clause, path);
  const folded = withoutCase(values);
  return {
    matches: predicateOf(checked, folded),
    fields: new Set(askedOf(checked).map(({ field }) => field)),
    needs: needsOf(checked, folded),
  };
}

function readTrigger(clause: TriggerClause | undefined, path: string): Checked {
  if (clause === undefined) throw invalidField(path, "must hold at least one comparison");
  return read(clause, path, 1, { nodes: 0 });
}

function read({ kind }: TriggerClause, path: string, depth: number, counting: Counting): Checked {
  const rule = beyondBounds(counting, depth);
  if (rule !== undefined) throw invalidField(path, rule);
  const place = `${path}.${jsonNames[kind.case ?? ""] ?? kind.case}`;
  switch (kind.case) {
    case undefined:
      throw invalidField(
        path,
        "must hold one of and, or, not, equals, greaterAndEquals, lessAndEquals, in, contains, startsWith, endsWith",
      );
    case "allOf":
    case "anyOf": {
      const { clauses } = kind.value;
      if (clauses.length === 0) throw invalidField(`${place}.clauses`, "must not be empty");
      const parts = clauses.map((inner, i) => read(inner, `${place}.clauses[${i}]`, depth + 1, counting));
      return { kind: kind.case === "allOf" ? "and" : "or", parts };
    }
    case "noneOf":
      if (kind.value.clause === undefined) throw invalidField(`${place}.clause`, "is required");
      return not(read(kind.value.clause, `${place}.clause`, depth + 1, counting));
    case "equals":
      return readComparison(Operation.OP_EQUALS, kind.value, place);
    case "greaterAndEquals":
      return readComparison(Operation.OP_GREATER_OR_EQ, kind.value, place);
    case "lessAndEquals":
      return readComparison(Operation.OP_LESS_OR_EQ, kind.value, place);
    case "oneOf":
      return readOneOf(kind.value, place);
    case "contains":
      return readText(Operation.OP_CONTAINS, kind.value, place);
    case "startsWith":
      return readText(Operation.OP_STARTS_WITH, kind.value, place);
    case "endsWith":
      return readText(Operation.OP_END_WITH, kind.value, place);
  }
}

function readComparison(
  operation: typeof Operation.OP_EQUALS | typeof Operation.OP_GREATER_OR_EQ | typeof Operation.OP_LESS_OR_EQ,
  { field, value }: TriggerComparison,
  path: string,
): Checked {
  const named = namedField(field, `${path}.field`);
  const literal = readValue(value, operation, `${path}.value`);
  return { ...named, asks: [{ operation, value: literal } as Comparison] };
}

function readOneOf({ field, values }: TriggerOneOf, path: string): Checked {
  const named = namedField(field, `${path}.field`);
  const value = values.map((each, i) => readValue(each, Operation.OP_IN, `${path}.values[${i}]`));
  return { ...named, asks: [{ operation: Operation.OP_IN, value }] };
}

function readText(
  operation: typeof Operation.OP_CONTAINS | typeof Operation.OP_STARTS_WITH | typeof Operation.OP_END_WITH,
  { field, value }: TriggerText,
  path: string,
): Checked {
  const named = namedField(field, `${path}.field`);
  return { ...named, asks: [{ operation, value: textOf(value, `${path}.value`) }] };
}

function readValue(value: TriggerValue | undefined, operation: keyof typeof rules, path: string): Literal {
  const { takes } = rules[operation];
  const kind = value?.kind;
  if (kind?.case === "stringVal") return textOf(kind.value, `${path}.stringVal`);
  if (kind?.case === "numberVal") {
    if (!Number.isFinite(kind.value)) throw invalidField(`${path}.numberVal`, "must be finite");
    return kind.value;
  }
  if (kind?.case === "boolVal" && takes.includes("boolean")) return kind.value;
  throw invalidField(
    path,
    `must hold ${takes.includes("boolean") ? "stringVal, numberVal or boolVal" : "stringVal or numberVal"}`,
  );
}

function textOf(text: string, path: string): string {
  refuseNul(text, path);
  return fold(text.toWellFormed());
}

/** The same fields with each text in lower case, as the texts of triggers are. */
function withoutCase<Row>(values: Values<Row>): Values<Row> {
  return {
    idsOf: values.idsOf,
    field(key) {
      const field = values.field(key);
      if (field === undefined) return undefined;
      const { get, numbers } = field;
      return { get: (row) => foldValue(get(row)), ...(numbers && { numbers: foldNames(numbers) }) };
    },
  };
}

function foldValue(value: FieldValue | undefined): FieldValue | undefined {
  if (typeof value === "string") return fold(value);
  return Array.isArray(value) ? value.map((item) => (typeof item === "string" ? fold(item) : item)) : value;
}

const foldNames = (numbers: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(numbers).map(([name, number]) => [fold(name), number]));

function needsOf<Row>(clause: Checked, values: Values<Row>): readonly Equality[] | undefined {
  switch (clause.kind) {
    case "and": {
      const each = clause.parts.flatMap((part) => {
        const needs = needsOf(part, values);
        return needs === undefined ? [] : [needs];
      });
      return each.sort((a, b) => a.length - b.length)[0];
    }
    case "or": {
      const each = clause.parts.map((part) => needsOf(part, values));
      return each.every((needs) => needs !== undefined) ? each.flat() : undefined;
    }
    case "field": {
      const field = values.field(clause.field);
      if (field === undefined) return [];
      const wanted = clause.asks === "exists" ? undefined : equalTo(field, clause.asks);
      return wanted?.flatMap((value) => literalKeys(value).map((key) => ({ field: clause.field, key })));
    }
    default:
      return undefined;
  }
}

function equalTo<Row>(field: ValueField<Row>, condition: readonly Comparison[]): readonly Literal[] | undefined {
  const [only] = withNumbers(field, condition);
  if (only?.operation === Operation.OP_EQUALS) return [only.value];
  return only?.operation === Operation.OP_IN ? only.value : undefined;
}

/*
 * How values compare as equal: texts as texts, numbers as numbers, and a number with a text that reads as it. So two texts
 * meet in `text`, two numbers in `number`; a wanted number meets all that reads as it, a wanted text the number it reads as.
 */

function literalKeys(value: Literal): string[] {
  if (typeof value === "boolean") return [`boolean ${value}`];
  if (typeof value === "number") return [`reads as ${value}`];
  const number = numericText(value);
  return number === undefined ? [`text ${value}`] : [`text ${value}`, `number ${number}`];
}

/** The keys that a row's value of a field has in an index over `needs`. */
export function equalityKeys(value: FieldValue | undefined): string[] {
  return elements(foldValue(value)).flatMap((element) => {
    if (typeof element === "boolean") return [`boolean ${element}`];
    if (typeof element === "number") return [`number ${element}`, `reads as ${element}`];
    const number = numericText(element);
    return number === undefined ? [`text ${element}`] : [`text ${element}`, `reads as ${number}`];
  });
}
