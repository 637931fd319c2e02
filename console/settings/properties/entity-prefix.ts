import { clone } from "@bufbuild/protobuf";
import { type Clause, ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";

const prefix = "entity.";

/** A clause of an updater, whose fields begin with `entity.`, as a search of entities takes it. */
export const withoutPrefix = (clause: Clause | undefined) =>
  renamed(clause, (field) => (field.startsWith(prefix) ? field.slice(prefix.length) : field));

/** A clause of a search as an updater takes it. */
export const withPrefix = (clause: Clause | undefined) =>
  renamed(clause, (field) => (field.startsWith(prefix) ? field : prefix + field));

function renamed(clause: Clause | undefined, rename: (field: string) => string): Clause | undefined {
  if (clause === undefined) return undefined;
  const copy = clone(ClauseSchema, clause);
  const within = (each: Clause | undefined): void => {
    if (each === undefined) return;
    if (each.filter) each.filter.field = rename(each.filter.field);
    if (each.oneOf) each.oneOf.field = rename(each.oneOf.field);
    if (each.range) each.range.path = rename(each.range.path);
    each.allOf?.clauses.forEach(within);
    each.anyOf?.clauses.forEach(within);
    within(each.noneOf?.clause);
  };
  within(copy);
  return copy;
}
