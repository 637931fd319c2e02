import { create } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";

/** A clause as a person edits it: groups of conditions. What the editor has no form for is kept as it is. */
export type Draft = Group | Condition | Other;

export interface Group {
  readonly kind: "group";
  readonly id: number;
  readonly match: "all" | "any" | "none";
  readonly parts: readonly Draft[];
}

export type ValueKind = "text" | "number" | "boolean";

export interface Condition {
  readonly kind: "condition";
  readonly id: number;
  readonly field: string;
  readonly operation: Comparison;
  readonly value: string;
  readonly valueKind: ValueKind;
}

interface Other {
  readonly kind: "other";
  readonly id: number;
  readonly clause: Clause;
}

/** Comparisons as they are offered; the last two have a form of their own in clauses. */
export const comparisons = [
  { name: "equals", word: "is", operation: Operation.OP_EQUALS, kinds: ["text", "number", "boolean"] },
  { name: "differs", word: "is not", operation: Operation.OP_NOT_EQUALS, kinds: ["text", "number", "boolean"] },
  { name: "among", word: "is one of", operation: undefined, kinds: ["text", "number"] },
  { name: "contains", word: "contains", operation: Operation.OP_CONTAINS, kinds: ["text"] },
  { name: "lacks", word: "does not contain", operation: Operation.OP_NOT_CONTAINS, kinds: ["text"] },
  { name: "starts", word: "starts with", operation: Operation.OP_STARTS_WITH, kinds: ["text"] },
  { name: "ends", word: "ends with", operation: Operation.OP_END_WITH, kinds: ["text"] },
  { name: "words", word: "has the words", operation: Operation.OP_TEXT, kinds: ["text"] },
  { name: "regex", word: "matches", operation: Operation.OP_REGEX, kinds: ["text"] },
  { name: "greater", word: "is greater than", operation: Operation.OP_GREATER, kinds: ["text", "number"] },
  { name: "least", word: "is at least", operation: Operation.OP_GREATER_OR_EQ, kinds: ["text", "number"] },
  { name: "less", word: "is less than", operation: Operation.OP_LESS, kinds: ["text", "number"] },
  { name: "most", word: "is at most", operation: Operation.OP_LESS_OR_EQ, kinds: ["text", "number"] },
  { name: "exists", word: "exists", operation: Operation.OP_EXISTS, kinds: ["text", "number", "boolean"] },
  { name: "missing", word: "does not exist", operation: Operation.OP_EXISTS, kinds: ["text", "number", "boolean"] },
] as const;

export type Comparison = (typeof comparisons)[number]["name"];

/** Comparisons without a value. */
export const withoutValue = (operation: Comparison) => operation === "exists" || operation === "missing";

let lastId = 0;
const nextId = () => ++lastId;

export const newCondition = (): Condition => ({
  kind: "condition",
  id: nextId(),
  field: "",
  operation: "equals",
  value: "",
  valueKind: "text",
});

export const newGroup = (parts: readonly Draft[] = [newCondition()], match: Group["match"] = "all"): Group => ({
  kind: "group",
  id: nextId(),
  match,
  parts,
});

/** A clause as a draft; its outermost part is always a group. */
export function draftOf(clause: Clause | undefined): Group {
  if (clause === undefined) return newGroup([]);
  const draft = partOf(clause);
  return draft.kind === "group" ? draft : newGroup([draft]);
}

function partOf(clause: Clause): Draft {
  if (clause.allOf) return newGroup(clause.allOf.clauses.map(partOf));
  if (clause.anyOf) return newGroup(clause.anyOf.clauses.map(partOf), "any");
  const inner = clause.noneOf?.clause;
  if (inner) return newGroup(inner.anyOf ? inner.anyOf.clauses.map(partOf) : [partOf(inner)], "none");
  const { filter, oneOf } = clause;
  if (oneOf && oneOf.values.length > 0) {
    const value = oneOf.values.map((each) => valueText(each)).join(", ");
    return { ...newCondition(), field: oneOf.field, operation: "among", value, valueKind: kindOf(oneOf.values[0]) };
  }
  if (filter) {
    const missing = filter.operation === Operation.OP_EXISTS && filter.value?.kind.value === false;
    const known = comparisons.find(({ operation }) => operation === filter.operation);
    if (known) {
      const value = known.name === "exists" ? "" : valueText(filter.value);
      const operation = missing ? "missing" : known.name;
      return { ...newCondition(), field: filter.field, operation, value, valueKind: kindOf(filter.value) };
    }
  }
  return { kind: "other", id: nextId(), clause };
}

const valueText = (value: Value | undefined) => (value?.kind.value == null ? "" : String(value.kind.value));

function kindOf(value: Value | undefined): ValueKind {
  if (value?.kind.case === "numberValue") return "number";
  return value?.kind.case === "boolValue" ? "boolean" : "text";
}

/** The path of each condition in the clause, as errors of the API name it. */
export type Places = Map<string, number>;

/** The clause of a draft; undefined when it holds no condition. Fills `places`. */
export function clauseOfDraft(draft: Draft, places: Places = new Map(), path = ""): Clause | undefined {
  if (draft.kind === "other") return draft.clause;
  if (draft.kind === "condition") {
    places.set(path, draft.id);
    return draft.field === "" ? undefined : conditionClause(draft);
  }
  const held = draft.parts.filter((part) => !isEmpty(part));
  if (held.length === 0) return undefined;
  const under = draft.match === "all" ? "and" : draft.match === "any" ? "or" : "not.clause.or";
  const single = held.length === 1 && draft.match !== "none";
  const clauses = held.flatMap((part, at) => {
    const clause = clauseOfDraft(part, places, single ? path : `${path}.${under}.clauses[${at}]`);
    return clause === undefined ? [] : [clause];
  });
  const [first] = clauses;
  if (single) return first;
  if (draft.match === "all") return create(ClauseSchema, { allOf: { clauses } });
  const anyOf = create(ClauseSchema, { anyOf: { clauses } });
  return draft.match === "any" ? anyOf : create(ClauseSchema, { noneOf: { clause: anyOf } });
}

const isEmpty = (draft: Draft): boolean =>
  draft.kind === "group" ? draft.parts.every(isEmpty) : draft.kind === "condition" && draft.field === "";

function conditionClause({ field, operation, value, valueKind }: Condition): Clause {
  if (operation === "among") {
    const values = value.split(",").map((each) => valueOf(each.trim(), valueKind));
    return create(ClauseSchema, { oneOf: { field, values } });
  }
  const sent = comparisons.find(({ name }) => name === operation)?.operation ?? Operation.OP_EQUALS;
  if (withoutValue(operation)) {
    const exists = create(ValueSchema, { kind: { case: "boolValue", value: operation === "exists" } });
    return create(ClauseSchema, { filter: { field, operation: sent, value: exists } });
  }
  return create(ClauseSchema, { filter: { field, operation: sent, value: valueOf(value, valueKind) } });
}

/** What cannot be read as a number goes out as text, and the server says what is wrong with it. */
function valueOf(text: string, kind: ValueKind): Value {
  if (kind === "boolean") return create(ValueSchema, { kind: { case: "boolValue", value: text === "true" } });
  if (kind === "number" && text.trim() !== "" && Number.isFinite(Number(text))) {
    return create(ValueSchema, { kind: { case: "numberValue", value: Number(text) } });
  }
  return create(ValueSchema, { kind: { case: "stringValue", value: text } });
}

/** How many conditions a draft holds. */
export const conditionCount = (draft: Draft): number =>
  draft.kind === "group" ? draft.parts.reduce((sum, part) => sum + conditionCount(part), 0) : 1;
