import { create } from "@bufbuild/protobuf";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { listOf, listText, setParameters } from "../data/address.ts";

/** The parameter of the address that holds the terms of the search field. */
const parameter = "find";

/** Most terms of a search. */
export const termsMax = 50;

/** Longer values are cut in answers. */
const wholeMax = 1024;

/** The terms of the address. Reads signals. */
export const terms = () => listOf(parameter).slice(0, termsMax);

export const chooseTerms = (chosen: readonly string[]) => setParameters({ [parameter]: listText(chosen) });

/** Fields that are searched for words. */
const texts = ["name", "entityName", "summary"];

const filter = (field: string, operation: Operation, value: string) =>
  create(ClauseSchema, { filter: { field, operation, value: { kind: { case: "stringValue", value } } } });

/** A term about a label: `label=value` or `label!=value`. */
interface LabelTerm {
  readonly label: string;
  readonly value: string;
  readonly not: boolean;
}

/** Reads a term about a label; undefined: it is words. */
function labelTerm(term: string): LabelTerm | undefined {
  const [, label, not, value] = /^([^\s=!]+)(!?)=(.*)$/s.exec(term) ?? [];
  return label === undefined || value === undefined ? undefined : { label, value, not: not !== "" };
}

/** Names of labels that terms can be about, as a pattern of an input. */
export const labelPattern = "[^\\s=!]+";

/** The term of a value that a label has. */
export const termOf = (label: string, value: string) => `${label}=${value}`;

/** A term as its chip shows it. */
export function termText(term: string): string {
  const about = labelTerm(term);
  return about === undefined ? term : `${about.label}: ${about.not ? "not " : ""}${about.value}`;
}

/** The values of which a label has one, by the terms of the address. Reads signals. */
export const valuesOf = (label: string) =>
  terms().flatMap((term) => {
    const about = labelTerm(term);
    return about?.label === label && !about.not ? about.value : [];
  });

/** Replaces the values of which a label has one; beyond `termsMax` terms nothing is added. */
export function chooseValues(label: string, values: readonly string[]): void {
  const before = valuesOf(label).map((value) => termOf(label, value));
  const others = terms().filter((term) => !before.includes(term));
  chooseTerms([...others, ...values.map((value) => termOf(label, value))].slice(0, termsMax));
}

/** A label has this value. */
export const labelClause = (label: string, value: string) =>
  filter(`labels.${label}`, value.length < wholeMax ? Operation.OP_EQUALS : Operation.OP_STARTS_WITH, value);

/** The clauses of the terms, all of which hold: each word is in a name, an entity or a summary; a label has one of its values. */
export function clausesOfTerms(all: readonly string[], without?: string): Clause[] {
  const oneOf = new Map<string, Clause[]>();
  const clauses: Clause[] = [];
  for (const term of all) {
    const about = labelTerm(term);
    if (about === undefined) clauses.push(wordsClause(term));
    else if (about.not)
      clauses.push(create(ClauseSchema, { noneOf: { clause: labelClause(about.label, about.value) } }));
    else oneOf.set(about.label, [...(oneOf.get(about.label) ?? []), labelClause(about.label, about.value)]);
  }
  for (const [label, values] of oneOf)
    if (label !== without) clauses.push(create(ClauseSchema, { anyOf: { clauses: values } }));
  return clauses;
}

function wordsClause(term: string): Clause {
  const words = term.split(/\s+/).filter((word) => word !== "");
  const anywhere = words.map((word) =>
    create(ClauseSchema, { anyOf: { clauses: texts.map((field) => filter(field, Operation.OP_TEXT, word)) } }),
  );
  return create(ClauseSchema, { allOf: { clauses: anywhere } });
}
