import { type Clause, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { equalityText, matcherText } from "../form/matcher-text.ts";

/** A label has one of these values, or with `not` none of them. */
interface Condition {
  readonly label: string;
  readonly values: readonly string[];
  readonly not: boolean;
}

/** Returns the matchers that say what a clause says of labels; what it says of other fields has none. */
export function matchersOf(clause: Clause | undefined): string[] {
  if (clause === undefined) return [];
  if (clause.allOf) return clause.allOf.clauses.flatMap(matchersOf);
  const condition = conditionOf(clause);
  if (condition === undefined) return [];
  return [valuesMatcher(condition.label, condition.values, condition.not)];
}

/** Returns the matcher that says that a label has one of these values, or with `not` none of them. */
export function valuesMatcher(label: string, values: readonly string[], not = false): string {
  const [only] = values;
  if (only !== undefined && values.length === 1)
    return not ? matcherText(label, "!=", only) : equalityText(label, only);
  return matcherText(label, not ? "!~" : "=~", values.map(literal).join("|"));
}

/** The pattern of a text. */
const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** The label of a field. */
function labelOf(field: string): string | undefined {
  if (field === "name") return "alertname";
  return field.startsWith("labels.") ? field.slice("labels.".length) : undefined;
}

function conditionOf({ anyOf, oneOf, noneOf, filter }: Clause): Condition | undefined {
  if (noneOf?.clause) {
    const inner = conditionOf(noneOf.clause);
    return inner && { ...inner, not: !inner.not };
  }
  if (anyOf) {
    const parts = anyOf.clauses.map(conditionOf);
    const [first] = parts;
    const alike = parts.every((each) => each !== undefined && each.label === first?.label && !each.not);
    return first && alike ? { ...first, values: parts.flatMap((each) => each?.values ?? []) } : undefined;
  }
  const { field, operation, values } = oneOf
    ? { ...oneOf, operation: Operation.OP_EQUALS }
    : { ...filter, values: filter?.value ? [filter.value] : [] };
  const label = labelOf(field ?? "");
  // Matchers take a label that is absent for the empty text.
  if (label !== undefined && operation === Operation.OP_EXISTS) return { label, values: [""], not: true };
  const texts = values.flatMap(({ kind }) => (kind.case === "stringValue" ? kind.value : []));
  const known = operation === Operation.OP_EQUALS || operation === Operation.OP_NOT_EQUALS;
  if (label === undefined || !known || texts.length === 0 || texts.length < values.length) return undefined;
  return { label, values: texts, not: operation === Operation.OP_NOT_EQUALS };
}
