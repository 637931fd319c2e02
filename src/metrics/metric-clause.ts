import { type Clause, Operation, OperationSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { checkClause } from "../clause/check.ts";
import type { Checked } from "../clause/checked.ts";
import type { FieldValue, Values } from "../clause/field.ts";
import { predicateOf } from "../clause/to-predicate.ts";
import { unsupported } from "../errors.ts";
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
}

/** The metric that a clause names: texts are equal where their characters are. */
function namedMetric(clause: Checked): string | undefined {
  if (clause.kind === "and") return clause.parts.map(namedMetric).find((metric) => metric !== undefined);
  if (clause.kind !== "field" || clause.field !== "name" || clause.asks === "exists") return undefined;
  for (const { operation, value } of clause.asks) {
    if (operation === Operation.OP_EQUALS && typeof value === "string") return value;
  }
  return undefined;
}

/**
 * Tells whether a clause matches a series, by the fields name, label, units and tags; ids are those of series.
 * @param path the clause's place in the request. @throws code 12 for unsupported operations, code 3 for what breaks a rule
 */
export function metricPredicate(clause: Clause, path: string): MetricPredicate {
  checkOperations(clause, path);
  let asksEntry = false;
  const values: Values<SeriesFacts> = {
    field(key) {
      asksEntry ||= key !== "name";
      const get = Object.hasOwn(readers, key) ? readers[key] : undefined;
      return get && { get };
    },
    idsOf: ({ id }) => [id()],
  };
  const checked = checkClause(clause, path);
  const matches = predicateOf(checked, values);
  return { matches, asksEntry, metric: namedMetric(checked) };
}
