import { type Clause, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Pace } from "../event-loop.ts";
import { checkClause } from "./check.ts";
import { type Asked, askedOf, type Checked } from "./checked.ts";
import { checkNames, withNumbers } from "./enumeration.ts";
import { answerOf, type ComparisonResult, compareExpression, type Later, negated } from "./expression.ts";
import type { FieldValue, Literal, RowValues } from "./field.ts";
import { holds } from "./operations.ts";

/** Decides whether a clause matches a row: at once, but for what its expressions wait for. */
export type Predicate<Row> = (row: Row, pace: Pace) => Later<ComparisonResult>;

/**
 * A function that reports whether a clause matches a row, as `toSql` would.
 * @param path the clause's place in the request, for errors. @throws code 3 for what breaks a rule of the language.
 */
export function toPredicate<Row>(clause: Clause, path: string, values: RowValues<Row>): Predicate<Row> {
  return predicateOf(checkClause(clause, path), values);
}

/** The same of a clause that has been checked. */
export function predicateOf<Row>(clause: Checked, values: RowValues<Row>): Predicate<Row> {
  switch (clause.kind) {
    case "and":
    case "or": {
      const parts = clause.parts.map((part) => predicateOf(part, values));
      const decisive = clause.kind === "or";
      return (row, pace) => answerOf(parts, (matches) => matches(row, pace), decisive);
    }
    case "not": {
      const matches = predicateOf(clause.part, values);
      return (row, pace) => negated(matches(row, pace));
    }
    case "field":
      return answer(clause, values);
    case "label":
      throw new RangeError("queries ask for no labels");
    case "ids": {
      const wanted = new Set(clause.ids);
      return (row) => values.idsOf(row).some((id) => wanted.has(id));
    }
  }
}

/** Clauses of more parts are cut into slices: a part compares up to 64 KiB. */
const partsMax = 4;

/** Makes the predicate of a clause that may be large. */
export function pacedPredicateOf<Row>(clause: Checked, values: RowValues<Row>): Predicate<Row> {
  if (askedOf(clause).length <= partsMax) return predicateOf(clause, values);
  switch (clause.kind) {
    case "and":
    case "or": {
      const parts = clause.parts.map((part) => pacedPredicateOf(part, values));
      const inTurn = (matches: Predicate<Row>, row: Row, pace: Pace) => {
        const turn = pace();
        return turn === undefined ? matches(row, pace) : turn.then(() => matches(row, pace));
      };
      return (row, pace) => answerOf(parts, (matches) => inTurn(matches, row, pace), clause.kind === "or");
    }
    case "not": {
      const matches = pacedPredicateOf(clause.part, values);
      return (row, pace) => negated(matches(row, pace));
    }
    default:
      return predicateOf(clause, values);
  }
}

function answer<Row>(asked: Asked, values: RowValues<Row>): Predicate<Row> {
  const { field: key, asks } = asked;
  const field = values.field(key);
  if (field === undefined) return () => false;
  checkNames(asked, field.numbers);
  if (asks === "exists") return (row) => (field.get(row) ?? null) !== null;
  const condition = withNumbers(field, asks);
  const [only] = condition;
  if (only?.operation === Operation.OP_REGEX) {
    const { expression } = only.value;
    const found = (element: Literal, pace: Pace) =>
      typeof element === "string" && compareExpression(expression, element, pace);
    return (row, pace) => answerOf(elementsOf(field.get(row)), (element) => found(element, pace), true);
  }
  return (row) => elementsOf(field.get(row)).some((element) => holds(element, condition));
}

/** What a value compares by: the elements of a list, else the value itself; without nulls and objects. */
export function elementsOf(value: FieldValue | undefined): Literal[] {
  return (Array.isArray(value) ? value : [value]).filter(
    (item) => typeof item === "string" || typeof item === "number" || typeof item === "boolean",
  );
}
