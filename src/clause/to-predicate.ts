import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { checkClause } from "./check.ts";
import type { Asked, Checked } from "./checked.ts";
import { checkNames, withNumbers } from "./enumeration.ts";
import type { FieldValue, Literal, Values } from "./field.ts";
import { holds } from "./operations.ts";

export type Predicate<Row> = (row: Row) => boolean;

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
