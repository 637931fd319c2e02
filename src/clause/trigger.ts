import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type {
  TriggerClause,
  TriggerComparison,
  TriggerOneOf,
  TriggerText,
  TriggerValue,
} from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../errors.ts";
import type { Pace } from "../event-loop.ts";
import { namedField, refuseNul } from "./check.ts";
import {
  type Asked,
  askedLabelsOf,
  askedOf,
  beyondBounds,
  type Checked,
  type Counting,
  conjunctionsOf,
  newCounting,
  not,
} from "./checked.ts";
import { checkNames, withNumbers } from "./enumeration.ts";
import { answerOf, type ComparisonResult, type Later, negated } from "./expression.ts";
import type { Comparison, Literal, RowValues } from "./field.ts";
import { fold } from "./fold.ts";
import { containsFolded, type FoldedField, type FoldedRow, fieldOf } from "./folded-row.ts";
import {
  exclusion,
  joinedTroubles,
  labelField,
  matchersTrouble,
  readMatchers,
  storedMatchers,
} from "./label-matcher.ts";
import { numericText } from "./numeric-text.ts";
import { holds, operationRules } from "./operations.ts";
import {
  type Equality,
  type FoldedNames,
  type Needle,
  needlesOf,
  needsOf,
  textComparisons,
  withFoldedNames,
} from "./trigger-needs.ts";

const jsonNames: Partial<Record<string, string>> = { allOf: "and", anyOf: "or", noneOf: "not", oneOf: "in" };

/** A trigger's clause, ready to be asked of rows. */
export interface CompiledTrigger {
  /** The clause, its texts in lower case. */
  clause: Checked;
  matches(row: FoldedRow, pace: Pace): Later<ComparisonResult>;
  /** The fields that its comparisons name. */
  fields: ReadonlySet<string>;
  /**
   * Of these equalities every row that matches satisfies at least one, as `equalityKeys` finds them in the row. None: no row
   * matches. Undefined: a row may match without any.
   */
  needs: readonly Equality[] | undefined;
  /** Of these every row that matches contains at least one; undefined: a row may match without any. */
  needles: readonly Needle[] | undefined;
  /** All texts that its comparisons look for by `contains`. */
  contains: readonly Needle[];
  /** How many texts it compares an event with that no index keeps from it: none where it needs an equality. */
  comparisons: number;
}

/**
 * Checks a trigger's clause against all rules of its language, and the names of enumerations. @param path the clause's place in the request, for errors.
 * @throws code 3 with the path of what is wrong.
 */
export function checkTrigger(
  clause: TriggerClause | undefined,
  path: string,
  values: Pick<RowValues<never>, "field">,
): void {
  const folded = withFoldedNames(values as RowValues<never>);
  for (const asked of askedOf(readTrigger(clause, path, newCounting()))) {
    checkNames(asked, values.field(asked.field)?.numbers, folded.field(asked.field)?.numbers);
  }
}

/**
 * A trigger's clause as a predicate, and what an index finds it by. It holds no connection; text is compared by each code
 * point in lower case. Expressions that would be refused today are compared within the bounds of today.
 * @throws as `checkTrigger` for all else
 */
export function compileTrigger<Row>(
  clause: TriggerClause | undefined,
  path: string,
  values: RowValues<Row>,
): CompiledTrigger {
  const checked = readTrigger(clause, path, undefined);
  const folded = withFoldedNames(values);
  const needs = needsOf(checked, folded);
  const contains = askedOf(checked).flatMap(({ field, asks }): Needle[] => {
    const only = asks === "exists" ? undefined : asks[0];
    return only?.operation === Operation.OP_CONTAINS ? [{ field, text: only.value }] : [];
  });
  return {
    clause: checked,
    matches: triggerPredicate(checked, folded),
    fields: new Set([
      ...askedOf(checked).map(({ field }) => field),
      ...askedLabelsOf(checked).map(({ matcher }) => labelField(matcher.name)),
    ]),
    needs,
    needles: needlesOf(checked),
    contains,
    comparisons: needs === undefined ? textComparisons(checked) : 0,
  };
}

/** Says which matchers of a stored trigger's clause exclude each other, or were hardly meant; empty: none. @throws as `compileTrigger` */
export function clauseTrouble(clause: TriggerClause | undefined, path: string): string {
  const checked = readTrigger(clause, path, undefined);
  const excluding = conjunctionsOf(checked).map((matchers, i) =>
    exclusion(matchers, i === 0 ? "nothing matches" : "that part of the clause matches nothing"),
  );
  return joinedTroubles([
    excluding.find((each) => each !== "") ?? "",
    matchersTrouble(askedLabelsOf(checked).map(({ matcher }) => matcher)),
  ]);
}

/**
 * Returns the path of the first part of a trigger's clause that keeps a row from matching; undefined: none does. What is undecided matches.
 * @throws as `compileTrigger`
 */
export async function falsePart<Row>(
  clause: TriggerClause | undefined,
  path: string,
  { values, row, pace }: { values: RowValues<Row>; row: FoldedRow; pace: Pace },
): Promise<string | undefined> {
  if (clause === undefined) return undefined;
  if ((await compileTrigger(clause, path, values).matches(row, pace)) !== false) return undefined;
  const { kind } = clause;
  const place = `${path}.${jsonNames[kind.case ?? ""] ?? kind.case}`;
  if (kind.case === "matchers") return `${place}.matchers[${await falseMatcher(kind.value.matchers, row, pace)}]`;
  if (kind.case !== "allOf") return place;
  for (const [i, inner] of kind.value.clauses.entries()) {
    const at = await falsePart(inner, `${place}.clauses[${i}]`, { values, row, pace });
    if (at !== undefined) return at;
  }
  return place;
}

/** Returns the place of the first matcher that is false; of a closed occurrence, which matches none, the first. */
export async function falseMatcher(texts: readonly string[], row: FoldedRow, pace: Pace): Promise<number> {
  for (const [i, matcher] of storedMatchers(texts, "matchers").entries())
    if ((await matcher.matches(row.label(matcher.name), pace)) === false) return i;
  return 0;
}

/** @param counting undefined: it is stored, and was counted then */
function readTrigger(clause: TriggerClause | undefined, path: string, counting: Counting | undefined): Checked {
  if (clause === undefined) throw invalidField(path, "must hold at least one comparison", FieldRule.REQUIRED);
  return read(clause, path, 1, { ...(counting ?? newCounting()), stored: counting === undefined });
}

interface Reading extends Counting {
  readonly stored: boolean;
}

function read({ kind }: TriggerClause, path: string, depth: number, counting: Reading): Checked {
  const rule = beyondBounds(counting, depth);
  if (rule !== undefined) throw invalidField(path, rule, FieldRule.CONDITION);
  const place = `${path}.${jsonNames[kind.case ?? ""] ?? kind.case}`;
  switch (kind.case) {
    case undefined:
      throw invalidField(
        path,
        "must hold one of and, or, not, equals, greaterAndEquals, lessAndEquals, in, contains, startsWith, endsWith, matchers",
        FieldRule.REQUIRED,
      );
    case "allOf":
    case "anyOf": {
      const { clauses } = kind.value;
      if (clauses.length === 0) throw invalidField(`${place}.clauses`, "must not be empty", FieldRule.REQUIRED);
      const parts = clauses.map((inner, i) => read(inner, `${place}.clauses[${i}]`, depth + 1, counting));
      return { kind: kind.case === "allOf" ? "and" : "or", parts };
    }
    case "noneOf":
      if (kind.value.clause === undefined) throw invalidField(`${place}.clause`, "is required", FieldRule.REQUIRED);
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
    case "matchers": {
      const { matchers } = kind.value;
      if (matchers.length === 0) throw invalidField(`${place}.matchers`, "must not be empty");
      const found = counting.stored
        ? storedMatchers(matchers, `${place}.matchers`)
        : readMatchers(matchers, `${place}.matchers`, counting.expressions);
      const parts = found.map((matcher, i): Checked => ({ kind: "label", matcher, path: `${place}.matchers[${i}]` }));
      return { kind: "and", parts };
    }
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
  return { ...named, asks: [{ operation, value: foldedText(value, `${path}.value`) }] };
}

function readValue(value: TriggerValue | undefined, operation: keyof typeof operationRules, path: string): Literal {
  const { takes } = operationRules[operation];
  const kind = value?.kind;
  if (kind?.case === "stringVal") return foldedText(kind.value, `${path}.stringVal`);
  if (kind?.case === "numberVal") {
    if (!Number.isFinite(kind.value))
      throw invalidField(`${path}.numberVal`, "must be finite", FieldRule.DOUBLE_FINITE);
    return kind.value;
  }
  if (kind?.case === "boolVal" && takes.includes("boolean")) return kind.value;
  throw invalidField(
    path,
    `must hold ${takes.includes("boolean") ? "stringVal, numberVal or boolVal" : "stringVal or numberVal"}`,
    FieldRule.CONDITION,
  );
}

function foldedText(text: string, path: string): string {
  refuseNul(text, path);
  return fold(text.toWellFormed());
}

type Matches = (row: FoldedRow, pace: Pace) => Later<ComparisonResult>;

/** A trigger's clause, whose texts are in lower case, as a function of rows. */
export function triggerPredicate(clause: Checked, names: FoldedNames): Matches {
  switch (clause.kind) {
    case "and":
    case "or": {
      const parts = clause.parts.map((part) => triggerPredicate(part, names));
      const decisive = clause.kind === "or";
      return (row, pace) => answerOf(parts, (matches) => matches(row, pace), decisive);
    }
    case "not": {
      const matches = triggerPredicate(clause.part, names);
      return (row, pace) => negated(matches(row, pace));
    }
    case "field":
      return comparing(clause, names);
    case "label": {
      const { matcher } = clause;
      return (row, pace) => matcher.matches(row.label(matcher.name), pace);
    }
    case "ids":
      throw new RangeError("triggers name no ids");
  }
}

function comparing({ field: name, asks }: Asked, names: FoldedNames): Matches {
  const known = names.field(name);
  if (known === undefined) return () => false;
  if (asks === "exists") throw new RangeError("triggers do not ask whether a field exists");
  const condition = withNumbers(known, asks);
  const [only, ...others] = condition;
  const some = (test: (field: FoldedField) => boolean) => (row: FoldedRow) => {
    const field = fieldOf(row, name);
    return field !== undefined && test(field);
  };
  if (only !== undefined && others.length === 0) {
    if (only.operation === Operation.OP_CONTAINS) return some((field) => containsFolded(field, only.value));
    if (only.operation === Operation.OP_IN) {
      const among = amongst(only.value);
      return some(({ elements }) => elements.some(among));
    }
  }
  return some(({ elements }) => elements.some((element) => holds(element, condition)));
}

/** Whether an element equals one of these values, without comparing it with each. */
function amongst(values: readonly Literal[]): (element: Literal) => boolean {
  const exact = new Set(values);
  const numbers = values.some((value) => typeof value === "number");
  const readAsNumbers = new Set(values.map((value) => (typeof value === "string" ? numericText(value) : undefined)));
  return (element) => {
    if (exact.has(element)) return true;
    if (typeof element === "number") return readAsNumbers.has(element);
    if (typeof element !== "string" || !numbers) return false;
    const number = numericText(element);
    return number !== undefined && exact.has(number);
  };
}
