import { create } from "@bufbuild/protobuf";
import {
  type TriggerClause,
  TriggerClauseSchema,
  type TriggerValue,
  TriggerValueSchema,
} from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import type { Compared, Language, ValueKind } from "./draft.ts";

/** The member of the clause for each comparison with one value, and with a text. */
const ofValue = { equals: "equals", least: "greaterAndEquals", most: "lessAndEquals" } as const;
const ofText = { contains: "contains", starts: "startsWith", ends: "endsWith" } as const;
/** Comparisons that are the opposite of another one: it stands within a `not`. */
const opposites = { differs: "equals", lacks: "contains" } as const;

/** The clauses of triggers. */
export const triggerClauses: Language<typeof TriggerClauseSchema> = {
  schema: TriggerClauseSchema,
  has: ["equals", "differs", "among", "contains", "lacks", "starts", "ends", "least", "most"],

  read(clause) {
    const { kind } = clause;
    switch (kind.case) {
      case "allOf":
        return { match: "all", clauses: kind.value.clauses };
      case "anyOf":
        return { match: "any", clauses: kind.value.clauses };
      case "noneOf":
        return kind.value.clause && readOpposite(kind.value.clause);
      default:
        return readCompared(clause);
    }
  },

  compare(compared) {
    const opposite = keyIn(opposites, compared.operation);
    if (opposite !== undefined) {
      const clause = comparing({ ...compared, operation: opposites[opposite] });
      return create(TriggerClauseSchema, { kind: { case: "noneOf", value: { clause } } });
    }
    return comparing(compared);
  },

  join(match, clauses) {
    if (match === "all") return create(TriggerClauseSchema, { kind: { case: "allOf", value: { clauses } } });
    if (match === "any") return anyOf(clauses);
    const [first] = clauses;
    const clause = clauses.length === 1 && first ? first : anyOf(clauses);
    return create(TriggerClauseSchema, { kind: { case: "noneOf", value: { clause } } });
  },
};

const anyOf = (clauses: TriggerClause[]) =>
  create(TriggerClauseSchema, { kind: { case: "anyOf", value: { clauses } } });

function readOpposite(inner: TriggerClause) {
  const { kind } = inner;
  if (kind.case === "anyOf") return { match: "none" as const, clauses: kind.value.clauses };
  const read = readCompared(inner);
  const operation = (Object.keys(opposites) as (keyof typeof opposites)[]).find(
    (each) => opposites[each] === read?.operation,
  );
  if (read !== undefined && operation !== undefined) return { ...read, operation };
  return { match: "none" as const, clauses: [inner] };
}

function readCompared({ kind }: TriggerClause): Compared | undefined {
  switch (kind.case) {
    case "equals":
    case "greaterAndEquals":
    case "lessAndEquals": {
      const { field, value } = kind.value;
      const operation = kind.case === "equals" ? "equals" : kind.case === "greaterAndEquals" ? "least" : "most";
      return { field, operation, value: valueText(value), valueKind: kindOf(value) };
    }
    case "oneOf": {
      const { field, values } = kind.value;
      const value = values.map(valueText).join(", ");
      return { field, operation: "among", value, valueKind: kindOf(values[0]) };
    }
    case "contains":
    case "startsWith":
    case "endsWith": {
      const { field, value } = kind.value;
      const operation = kind.case === "contains" ? "contains" : kind.case === "startsWith" ? "starts" : "ends";
      return { field, operation, value, valueKind: "text" };
    }
    default:
      return undefined;
  }
}

function comparing({ field, operation, value, valueKind }: Compared): TriggerClause {
  if (operation === "among") {
    const values = value.split(",").map((each) => valueOf(each.trim(), valueKind));
    return create(TriggerClauseSchema, { kind: { case: "oneOf", value: { field, values } } });
  }
  const text = keyIn(ofText, operation);
  if (text !== undefined) return create(TriggerClauseSchema, { kind: { case: ofText[text], value: { field, value } } });
  const name = ofValue[keyIn(ofValue, operation) ?? "equals"];
  return create(TriggerClauseSchema, { kind: { case: name, value: { field, value: valueOf(value, valueKind) } } });
}

const keyIn = <T extends object>(table: T, key: string) => (key in table ? (key as keyof T) : undefined);

const valueText = (value: TriggerValue | undefined) => String(value?.kind.value ?? "");

function kindOf(value: TriggerValue | undefined): ValueKind {
  if (value?.kind.case === "numberVal") return "number";
  return value?.kind.case === "boolVal" ? "boolean" : "text";
}

/** What cannot be read as a number goes out as text, and the server says what is wrong with it. */
function valueOf(text: string, kind: ValueKind): TriggerValue {
  if (kind === "boolean") return create(TriggerValueSchema, { kind: { case: "boolVal", value: text === "true" } });
  if (kind === "number" && text.trim() !== "" && Number.isFinite(Number(text))) {
    return create(TriggerValueSchema, { kind: { case: "numberVal", value: Number(text) } });
  }
  return create(TriggerValueSchema, { kind: { case: "stringVal", value: text } });
}
