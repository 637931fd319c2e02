import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Pace } from "../event-loop.ts";
import { checkClause } from "./check.ts";
import { type Asked, askedOf, type Checked } from "./checked.ts";
import { checkNames, withNumbers } from "./enumeration.ts";
import type { FieldValue, Literal, Values } from "./field.ts";
import { holds } from "./operations.ts";

export type Predicate<Row> = (row: Row) => boolean;

/** Decides whether a clause matches a row: at once for a small clause, in slices for a large one. */
export type RowPredicate<Row> = (row: Row, pace: Pace) => boolean | Promise<boolean>;

/**
 * A function that reports whether a clause matches a row, as `toSql` would.
 * @param path the clause's place in the request, for errors. @throws code 3 for what breaks a rule of the language.
 */
export function toPredicate<Row>(clause: Clause, path: string, values: Values<Row>): Predicate<Row> {
  return predicateOf(checkClause(clause, path), values);
}

/** The same of a clause that has been checked. */
export function predicateOf<Row>(clause: Checked, values: Values<Row>): Predicate<Row> {
  switch (clause.kind) {
    case "and": {
      const all = clause.parts.map((part) => predicateOf(part, values));
      return (row) => all.every((matches) => matches(row));
    }
    case "or": {
      const any = clause.parts.map((part) => predicateOf(part, values));
      return (row) => any.some((matches) => matches(row));
    }
    case "not": {
      const matches = predicateOf(clause.part, values);
      return (row) => !matches(row);
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

/** Clauses of no more parts are evaluated in one go: an expression takes up to 20 ms over a text of 64 KiB. */
const partsMax = 4;

/** Makes the predicate of a clause that may be large. */
export function pacedPredicateOf<Row>(clause: Checked, values: Values<Row>): RowPredicate<Row> {
  if (askedOf(clause).length <= partsMax) return predicateOf(clause, values);
  switch (clause.kind) {
    case "and":
    case "or": {
      const parts = clause.parts.map((part) => pacedPredicateOf(part, values));
      const decided = clause.kind === "or";
      return async (row, pace) => {
        for (const matches of parts) {
          await pace();
          if ((await matches(row, pace)) === decided) return decided;
        }
        return !decided;
      };
    }
    case "not": {
      const matches = pacedPredicateOf(clause.part, values);
      return async (row, pace) => !(await matches(row, pace));
    }
    default:
      return predicateOf(clause, values);
  }
}

function answer<Row>(asked: Asked, values: Values<Row>): Predicate<Row> {
  const { field: key, asks } = asked;
  const field = values.field(key);
  if (field === undefined) return () => false;
  checkNames(asked, field.numbers);
  if (asks === "exists") return (row) => (field.get(row) ?? null) !== null;
  const condition = withNumbers(field, asks);
  return (row) => elementsOf(field.get(row)).some((element) => holds(element, condition));
}

/** What a value compares by: the elements of a list, else the value itself; without nulls and objects. */
export function elementsOf(value: FieldValue | undefined): Literal[] {
  return (Array.isArray(value) ? value : [value]).filter(
    (item) => typeof item === "string" || typeof item === "number" || typeof item === "boolean",
  );
}
