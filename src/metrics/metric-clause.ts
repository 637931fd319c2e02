import { type Clause, Operation, OperationSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { FieldValue, Values } from "../clause/field.ts";
import { toPredicate } from "../clause/to-predicate.ts";
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
    idsOf: ({ id }) => [id],
  };
  const matches = toPredicate(clause, path, values);
  return { matches, asksEntry };
}
