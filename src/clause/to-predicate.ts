import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  checkClause,
  clauseOf,
  clausesOf,
  memberOf,
  type Question,
  readFilter,
  readOneOf,
  readRange,
} from "./check.ts";
import { withNumbers } from "./enumeration.ts";
import type { FieldValue, Literal, Resolver } from "./field.ts";
import { holds } from "./operations.ts";

type Predicate<Row> = (row: Row) => boolean;

/**
 * A function that tells whether a clause matches a row, as `toSql` would.
 * @param path the clause's place in the request, for errors. @throws code 3 for what breaks a rule of the language.
 */
export function toPredicate<Row>(clause: Clause, path: string, resolver: Resolver<Row>): Predicate<Row> {
  checkClause(clause, path);
  return compile(clause, path);

  function compile(clause: Clause, path: string): Predicate<Row> {
    const member = memberOf(clause, path);
    switch (member.case) {
      case "allOf": {
        const all = clausesOf(member).map(([inner, place]) => compile(inner, place));
        return (row) => all.every((matches) => matches(row));
      }
      case "anyOf": {
        const any = clausesOf(member).map(([inner, place]) => compile(inner, place));
        return (row) => any.some((matches) => matches(row));
      }
      case "noneOf": {
        const matches = compile(...clauseOf(member));
        return (row) => !matches(row);
      }
      case "filter":
        return answer(readFilter(member.value, member.path));
      case "oneOf":
        return answer(readOneOf(member.value, member.path));
      case "range":
        return answer(readRange(member.value, member.path));
      case "withIds": {
        const wanted = new Set(member.value.ids);
        return (row) => resolver.idsOf(row).some((id) => wanted.has(id));
      }
    }
  }

  function answer({ field: key, asks, negated }: Question): Predicate<Row> {
    const field = resolver.field(key);
    if (field === undefined) return () => negated;
    if (asks === "exists") return (row) => ((field.get(row) ?? null) !== null) !== negated;
    const condition = withNumbers(field, asks);
    return (row) => elements(field.get(row)).some((element) => holds(element, condition)) !== negated;
  }
}

function elements(value: FieldValue | undefined): Literal[] {
  return (Array.isArray(value) ? value : [value]).filter(
    (item) => typeof item === "string" || typeof item === "number" || typeof item === "boolean",
  );
}
