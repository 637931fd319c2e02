import { create } from "@bufbuild/protobuf";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { listOf } from "../data/address.ts";

/** The parameter of the address that holds the terms of the search field. */
export const termsParameter = "find";

/** How many terms a search has at most. */
export const termsMax = 20;

/** The terms of the address, all of which hold. Reads signals. */
export const terms = () => listOf(termsParameter).slice(0, termsMax);

/** What words are looked for in. */
const texts = ["name", "entityName", "summary"];

const filter = (field: string, operation: Operation, value: string) =>
  create(ClauseSchema, { filter: { field, operation, value: { kind: { case: "stringValue", value } } } });

/** The clause of a term: `label=value`, `label!=value`, or words, each of which is in a name, an entity or a summary. */
export function clauseOfTerm(term: string): Clause {
  const [, label, not, value] = /^([^\s=!]+)(!?)=(.*)$/s.exec(term) ?? [];
  if (label === undefined || value === undefined) {
    const words = term.split(/\s+/).filter((word) => word !== "");
    const anywhere = words.map((word) =>
      create(ClauseSchema, { anyOf: { clauses: texts.map((field) => filter(field, Operation.OP_TEXT, word)) } }),
    );
    return create(ClauseSchema, { allOf: { clauses: anywhere } });
  }
  const equal = filter(`labels.${label}`, Operation.OP_EQUALS, value);
  return not === "" ? equal : create(ClauseSchema, { noneOf: { clause: equal } });
}
