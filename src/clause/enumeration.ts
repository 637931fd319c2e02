import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../errors.ts";
import type { Asked } from "./checked.ts";
import type { Comparison, Condition, Literal, SqlField } from "./field.ts";
import { numericText } from "./numeric-text.ts";

/**
 * Refuses names that an enumeration does not have. @param named the same numbers by the names as the condition spells them
 * @throws code 3 at the field's place
 */
export function checkNames(
  { field, path, asks }: Asked,
  numbers: SqlField["numbers"],
  named: SqlField["numbers"] = numbers,
): void {
  if (numbers === undefined || named === undefined || asks === "exists") return;
  for (const { operation, value } of asks) {
    if (textOperations.has(operation)) continue;
    const unknown = [value].flat().find((each) => typeof each === "string" && isUnknown(each, named));
    if (unknown === undefined) continue;
    const known = Object.entries(numbers).map(([name, number]) => `${name} (${number})`);
    throw invalidField(
      path,
      `compares ${field} with ${JSON.stringify(unknown)}, which is none of ${known.join(", ")}`,
      FieldRule.UNKNOWN_VALUE,
    );
  }
}

const isUnknown = (text: string, numbers: Readonly<Record<string, number>>) =>
  !Object.hasOwn(numbers, text) && numericText(text) === undefined;

const textOperations: ReadonlySet<Operation> = new Set([
  Operation.OP_CONTAINS,
  Operation.OP_STARTS_WITH,
  Operation.OP_END_WITH,
  Operation.OP_REGEX,
  Operation.OP_TEXT,
]);

/** The condition with the numbers of an enumeration in place of its names. */
export function withNumbers({ numbers }: Pick<SqlField, "numbers">, condition: Condition): Condition {
  if (numbers === undefined) return condition;
  const numbered = <T extends Literal>(value: T) =>
    typeof value === "string" && Object.hasOwn(numbers, value) ? (numbers[value] as number) : value;
  return condition.map((comparison): Comparison => {
    switch (comparison.operation) {
      case Operation.OP_EQUALS:
        return { ...comparison, value: numbered(comparison.value) };
      case Operation.OP_IN:
        return { ...comparison, value: comparison.value.map(numbered) };
      case Operation.OP_GREATER:
      case Operation.OP_GREATER_OR_EQ:
      case Operation.OP_LESS:
      case Operation.OP_LESS_OR_EQ:
        return { ...comparison, value: numbered(comparison.value) };
      default:
        return comparison;
    }
  });
}
