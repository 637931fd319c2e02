import { type Clause, Operation, OperationSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { checkClause } from "../clause/check.ts";
import { askedOf, type Checked } from "../clause/checked.ts";
import type { FieldValue, RowValues } from "../clause/field.ts";
import { predicateOf } from "../clause/to-predicate.ts";
import { invalidField, unsupported } from "../errors.ts";
import { unpaced } from "../event-loop.ts";
import type { Labels } from "./labels.ts";
import type { SeriesFacts } from "./messages.ts";

const supported = new Set<Operation>([
  Operation.OP_UNSPECIFIED, // refused as a wrong one
  Operation.OP_EQUALS,
  Operation.OP_EXISTS,
  Operation.OP_GREATER,
  Operation.OP_GREATER_OR_EQ,
  Operation.OP_LESS,
  Operation.OP_LESS_OR_EQ,
  Operation.OP_NOT_EQUALS,
]);

const readers: Readonly<Record<string, (facts: SeriesFacts) => FieldValue | undefined>> = {
  name: ({ metric }) => metric,
  label: ({ entry }) => entry?.label || undefined,
  units: ({ entry, units }) => entry?.units || units || undefined,
  tags: ({ entry }) => entry?.tags,
};

const ofLabels = "labels.";

/** How a label is read whose key follows `labels.` in the name of a field. */
function labelReader(key: string): (facts: Pick<SeriesFacts, "labels">) => FieldValue | undefined {
  return ({ labels = {} }) => (Object.hasOwn(labels, key) ? labels[key] : undefined);
}

/** Refuses filters by operations that are not for metrics. @throws code 12 */
function checkOperations(clause: Clause, path: string): void {
  const { allOf, anyOf, noneOf, filter } = clause;
  for (const [i, inner] of (allOf?.clauses ?? []).entries()) checkOperations(inner, `${path}.and.clauses[${i}]`);
  for (const [i, inner] of (anyOf?.clauses ?? []).entries()) checkOperations(inner, `${path}.or.clauses[${i}]`);
  if (noneOf?.clause !== undefined) checkOperations(noneOf.clause, `${path}.not.clause`);
  if (filter !== undefined && !supported.has(filter.operation)) {
    const name = OperationSchema.value[filter.operation]?.name;
    throw unsupported(`${path}.filter.operation: ${name} is not supported for metrics`);
  }
}

/** What a clause asks of a series. */
export interface MetricPredicate {
  matches(facts: SeriesFacts): boolean;
  /** Whether it looks at the dictionary's entry. */
  readonly asksEntry: boolean;
  /** The only metric whose series it can match; undefined: any. */
  readonly metric?: string | undefined;
  /** A label that each of them has; undefined: none. */
  readonly label?: { readonly key: string; readonly value: string } | undefined;
}

/** The only text that a field may have for a clause to match: texts are equal where their characters are. */
function equalTo(clause: Checked, field: string): string | undefined {
  if (clause.kind === "and") return clause.parts.map((part) => equalTo(part, field)).find((text) => text !== undefined);
  if (clause.kind !== "field" || clause.field !== field || clause.asks === "exists") return undefined;
  for (const { operation, value } of clause.asks) {
    if (operation === Operation.OP_EQUALS && typeof value === "string") return value;
  }
  return undefined;
}

/** A label that all series have which a clause matches. */
function namedLabel(clause: Checked): MetricPredicate["label"] {
  if (clause.kind === "and") return clause.parts.map(namedLabel).find((label) => label !== undefined);
  if (clause.kind !== "field" || !clause.field.startsWith(ofLabels)) return undefined;
  const value = equalTo(clause, clause.field);
  return value === undefined ? undefined : { key: clause.field.slice(ofLabels.length), value };
}

/**
 * Reports whether a clause matches a series, by the fields name, label, units, tags and labels.<key>; ids are those of series.
 * @param path the clause's place in the request. @throws code 12 for unsupported operations, code 3 for what breaks a rule
 */
export function metricPredicate(clause: Clause, path: string): MetricPredicate {
  checkOperations(clause, path);
  let asksEntry = false;
  const values: RowValues<SeriesFacts> = {
    field(key) {
      if (key.startsWith(ofLabels)) return { get: labelReader(key.slice(ofLabels.length)) };
      asksEntry ||= key !== "name";
      const get = Object.hasOwn(readers, key) ? readers[key] : undefined;
      return get && { get };
    },
    idsOf: ({ id }) => [id()],
  };
  const checked = checkClause(clause, path);
  const predicate = predicateOf(checked, values);
  // No expression is among the operations: the answer is there at once.
  const matches = (facts: SeriesFacts) => predicate(facts, unpaced) === true;
  return { matches, asksEntry, metric: equalTo(checked, "name"), label: namedLabel(checked) };
}

/**
 * Returns whether a clause matches the labels of a series, which are all that it may ask for.
 * @param path the clause's place in the request. @throws code 12 for unsupported operations, code 3 for what breaks a rule
 */
export function labelsPredicate(clause: Clause, path: string): (labels: Labels | undefined) => boolean {
  checkOperations(clause, path);
  const checked = checkClause(clause, path);
  for (const asked of askedOf(checked)) {
    if (!asked.field.startsWith(ofLabels))
      throw invalidField(asked.path, "must be labels. and a key", FieldRule.UNKNOWN_VALUE);
  }
  const values: RowValues<Pick<SeriesFacts, "labels">> = {
    field: (key) => ({ get: labelReader(key.slice(ofLabels.length)) }),
    idsOf: () => [],
  };
  const matches = predicateOf(checked, values);
  return (labels) => matches({ labels }, unpaced) === true;
}
