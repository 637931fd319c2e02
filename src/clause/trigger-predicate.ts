import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Asked, Checked } from "./checked.ts";
import { withNumbers } from "./enumeration.ts";
import type { Literal } from "./field.ts";
import { contains, type FoldedField, type FoldedRow, fieldOf } from "./folded-row.ts";
import { numericText } from "./numeric-text.ts";
import { holds } from "./operations.ts";
import type { FoldedNames } from "./trigger-needs.ts";

type Matches = (row: FoldedRow) => boolean;

/** A trigger's clause, whose texts are in lower case, as a function of rows. */
export function triggerPredicate(clause: Checked, names: FoldedNames): Matches {
  switch (clause.kind) {
    case "and": {
      const all = clause.parts.map((part) => triggerPredicate(part, names));
      return (row) => all.every((matches) => matches(row));
    }
    case "or": {
      const any = clause.parts.map((part) => triggerPredicate(part, names));
      return (row) => any.some((matches) => matches(row));
    }
    case "not": {
      const matches = triggerPredicate(clause.part, names);
      return (row) => !matches(row);
    }
    case "field":
      return comparing(clause, names);
    case "label": {
      const { matcher } = clause;
      return (row) => matcher.matches(row.label(matcher.name));
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
    if (only.operation === Operation.OP_CONTAINS) return some((field) => contains(field, only.value));
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
