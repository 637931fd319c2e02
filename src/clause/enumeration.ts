import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Comparison, Condition, Literal, SqlField } from "./field.ts";

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
