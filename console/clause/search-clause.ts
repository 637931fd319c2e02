import { create } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { type Compared, type Comparison, comparisons, type Language, type ValueKind, withoutValue } from "./draft.ts";

/** The operation of each comparison; one of several values is a clause of its own. */
const operations: Readonly<Record<Exclude<Comparison, "among">, Operation>> = {
  equals: Operation.OP_EQUALS,
  differs: Operation.OP_NOT_EQUALS,
  contains: Operation.OP_CONTAINS,
  lacks: Operation.OP_NOT_CONTAINS,
  starts: Operation.OP_STARTS_WITH,
  ends: Operation.OP_END_WITH,
  words: Operation.OP_TEXT,
  regex: Operation.OP_REGEX,
  greater: Operation.OP_GREATER,
  least: Operation.OP_GREATER_OR_EQ,
  less: Operation.OP_LESS,
  most: Operation.OP_LESS_OR_EQ,
  exists: Operation.OP_EXISTS,
  missing: Operation.OP_EXISTS,
};

/** The clauses of searches: of entities, events and maintenance windows. */
export const searchClauses: Language<typeof ClauseSchema> = {
  schema: ClauseSchema,
  has: comparisons.map(({ name }) => name),

  read({ allOf, anyOf, noneOf, oneOf, filter }) {
    if (allOf) return { match: "all", clauses: allOf.clauses };
    if (anyOf) return { match: "any", clauses: anyOf.clauses };
    const inner = noneOf?.clause;
    if (inner) return { match: "none", clauses: inner.anyOf?.clauses ?? [inner] };
    if (oneOf) {
      const value = oneOf.values.map(valueText).join(", ");
      return { field: oneOf.field, operation: "among", value, valueKind: kindOf(oneOf.values[0]) };
    }
    return filter && comparedOf(filter.field, filter.operation, filter.value);
  },

  compare({ field, operation, value, valueKind }) {
    if (operation === "among") {
      const values = value.split(",").map((each) => valueOf(each.trim(), valueKind));
      return create(ClauseSchema, { oneOf: { field, values } });
    }
    const sent = withoutValue(operation)
      ? create(ValueSchema, { kind: { case: "boolValue", value: operation === "exists" } })
      : valueOf(value, valueKind);
    return create(ClauseSchema, { filter: { field, operation: operations[operation], value: sent } });
  },

  join(match, clauses) {
    if (match === "all") return create(ClauseSchema, { allOf: { clauses } });
    if (match === "any") return create(ClauseSchema, { anyOf: { clauses } });
    const [first] = clauses;
    const clause = clauses.length === 1 && first ? first : create(ClauseSchema, { anyOf: { clauses } });
    return create(ClauseSchema, { noneOf: { clause } });
  },
};

/** The clauses that choose series by their labels, which know fewer comparisons. */
export const labelClauses: Language<typeof ClauseSchema> = {
  ...searchClauses,
  has: ["equals", "differs", "among", "greater", "least", "less", "most", "exists", "missing"],
};

function comparedOf(field: string, operation: Operation, value: Value | undefined): Compared | undefined {
  const missing = operation === Operation.OP_EXISTS && value?.kind.value === false;
  const name = (Object.keys(operations) as (keyof typeof operations)[]).find((each) => operations[each] === operation);
  if (name === undefined) return undefined;
  if (missing) return { field, operation: "missing", value: "", valueKind: "text" };
  return { field, operation: name, value: name === "exists" ? "" : valueText(value), valueKind: kindOf(value) };
}

const valueText = (value: Value | undefined) => (value?.kind.value == null ? "" : String(value.kind.value));

function kindOf(value: Value | undefined): ValueKind {
  if (value?.kind.case === "numberValue") return "number";
  return value?.kind.case === "boolValue" ? "boolean" : "text";
}

/** What cannot be read as a number goes out as text, and the server says what is wrong with it. */
function valueOf(text: string, kind: ValueKind): Value {
  if (kind === "boolean") return create(ValueSchema, { kind: { case: "boolValue", value: text === "true" } });
  if (kind === "number" && text.trim() !== "" && Number.isFinite(Number(text))) {
    return create(ValueSchema, { kind: { case: "numberValue", value: Number(text) } });
  }
  return create(ValueSchema, { kind: { case: "stringValue", value: text } });
}
