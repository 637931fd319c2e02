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

/** A term as its chip shows it. */
export function termText(term: string): string {
  const about = labelTerm(term);
  if (about === undefined) return term;
  const { label, value, not } = about;
  if (value === "") return `${label}: ${not ? "any" : "none"}`;
  return `${label}: ${not ? "not " : ""}${value}`;
}

/** The values of which a label has one, or with `not` none, by the terms of the address. Reads signals. */
export const valuesOf = (label: string, not = false) =>
  terms().flatMap((term) => {
    const about = labelTerm(term);
    return about?.label === label && about.not === not ? about.value : [];
  });

/** Replaces the values of which a label has one, and those that it has not; beyond `termsMax` terms nothing is added. */
export function chooseValues(label: string, values: readonly string[], without: readonly string[]): void {
  const others = terms().filter((term) => labelTerm(term)?.label !== label);
  const chosen = [...values.map((value) => `${label}=${value}`), ...without.map((value) => `${label}!=${value}`)];
  chooseTerms([...others, ...chosen].slice(0, termsMax));
}

/**
 * Returns the parameters of the list of what has these labels: terms of the search field, as far as these can say them, and conditions
 * for the rest. `where` writes conditions into an address.
 */
export function parametersOfLabels(
  labels: readonly (readonly [label: string, value: string])[],
  where: (clause: Clause) => string,
): Record<string, string> {
  const known = labels.map(([label, value]) => ({ label, value, term: `${label}=${value}` }));
  const chosen = known.filter(({ label, term }) => labelTerm(term)?.label === label).slice(0, termsMax);
  const rest = known.filter((each) => !chosen.includes(each)).map(({ label, value }) => labelClause(label, value));
  return {
    find: listText(chosen.map(({ term }) => term)),
    ...(rest.length > 0 && { where: where(create(ClauseSchema, { allOf: { clauses: rest } })) }),
  };
}

/** Lists only what has this value of a label, or with `out` only what has not. */
export function narrowBy(label: string, value: string, out: boolean): void {
  const term = `${label}${out ? "!" : ""}=${value}`;
  if (labelTerm(term)?.label === label) chooseTerms([...new Set([...terms(), term])].slice(0, termsMax));
}

/** A label has this value; as in matchers, the empty one stands for no such label. */
export function labelClause(label: string, value: string): Clause {
  const field = `labels.${label}`;
  if (value !== "")
    return filter(field, value.length < wholeMax ? Operation.OP_EQUALS : Operation.OP_STARTS_WITH, value);
  const exists = create(ClauseSchema, { filter: { field, operation: Operation.OP_EXISTS } });
  return create(ClauseSchema, { noneOf: { clause: exists } });
}

/** The clauses of the terms, all of which hold: each word is in a name, an entity or a summary; a label has one of its values. */
export function clausesOfTerms(all: readonly string[], without?: string): Clause[] {
  const oneOf = new Map<string, Clause[]>();
  const clauses: Clause[] = [];
  for (const term of all) {
    const about = labelTerm(term);
    if (about === undefined) clauses.push(wordsClause(term));
    else if (about.label === without) continue;
    else if (about.not)
      clauses.push(create(ClauseSchema, { noneOf: { clause: labelClause(about.label, about.value) } }));
    else oneOf.set(about.label, [...(oneOf.get(about.label) ?? []), labelClause(about.label, about.value)]);
  }
  for (const values of oneOf.values()) clauses.push(create(ClauseSchema, { anyOf: { clauses: values } }));
  return clauses;
}

function wordsClause(term: string): Clause {
  const words = term.split(/\s+/).filter((word) => word !== "");
  const anywhere = words.map((word) =>
    create(ClauseSchema, { anyOf: { clauses: texts.map((field) => filter(field, Operation.OP_TEXT, word)) } }),
  );
  return create(ClauseSchema, { allOf: { clauses: anywhere } });
}
