import { type DescMessage, equals, fromJsonString, type MessageShape, toJson } from "@bufbuild/protobuf";

/** A clause as a person edits it: groups of conditions. What the editor has no form for stays as it is, as JSON. */
export type Draft = Group | Condition | Other;

export interface Group {
  readonly kind: "group";
  readonly id: number;
  readonly match: Match;
  readonly parts: readonly Draft[];
}

export type Match = "all" | "any" | "none";

export type ValueKind = "text" | "number" | "boolean";

export interface Condition extends Compared {
  readonly kind: "condition";
  readonly id: number;
}

/** What a condition says. */
export interface Compared {
  readonly field: string;
  readonly operation: Comparison;
  readonly value: string;
  readonly valueKind: ValueKind;
}

export interface Other {
  readonly kind: "other";
  readonly id: number;
  /** As it was typed. */
  readonly text: string;
  /** The last of it that is a clause. */
  readonly json: string;
}

/** Comparisons as they are offered, with the kinds of value that they take. */
export const comparisons = [
  { name: "equals", word: "is", kinds: ["text", "number", "boolean"] },
  { name: "differs", word: "is not", kinds: ["text", "number", "boolean"] },
  { name: "among", word: "is one of", kinds: ["text", "number"] },
  { name: "contains", word: "contains", kinds: ["text"] },
  { name: "lacks", word: "does not contain", kinds: ["text"] },
  { name: "starts", word: "starts with", kinds: ["text"] },
  { name: "ends", word: "ends with", kinds: ["text"] },
  { name: "words", word: "has the words", kinds: ["text"] },
  { name: "regex", word: "matches", kinds: ["text"] },
  { name: "greater", word: "is greater than", kinds: ["text", "number"] },
  { name: "least", word: "is at least", kinds: ["text", "number"] },
  { name: "less", word: "is less than", kinds: ["text", "number"] },
  { name: "most", word: "is at most", kinds: ["text", "number"] },
  { name: "exists", word: "exists", kinds: ["text", "number", "boolean"] },
  { name: "missing", word: "does not exist", kinds: ["text", "number", "boolean"] },
] as const;

export type Comparison = (typeof comparisons)[number]["name"];

/** Comparisons without a value. */
export const withoutValue = (operation: Comparison) => operation === "exists" || operation === "missing";

/** How the clauses of one language are read and made. */
export interface Language<S extends DescMessage> {
  readonly schema: S;
  /** The comparisons that it has. */
  readonly has: readonly Comparison[];
  /** What a clause says; undefined: the editor has no form for it. */
  read(clause: MessageShape<S>): { match: Match; clauses: readonly MessageShape<S>[] } | Compared | undefined;
  compare(compared: Compared): MessageShape<S>;
  /** Several clauses as one; `none` also of a single one. */
  join(match: Match, clauses: MessageShape<S>[]): MessageShape<S>;
}

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

export const newGroup = (parts: readonly Draft[] = [newCondition()], match: Match = "all"): Group => ({
  kind: "group",
  id: nextId(),
  match,
  parts,
});

/** A clause as a draft; its outermost part is always a group. */
export function draftOf<S extends DescMessage>(language: Language<S>, clause: MessageShape<S> | undefined): Group {
  if (clause === undefined) return newGroup([]);
  const draft = partOf(language, clause);
  return draft.kind === "group" ? draft : newGroup([draft]);
}

function partOf<S extends DescMessage>(language: Language<S>, clause: MessageShape<S>): Draft {
  const read = language.read(clause);
  if (read !== undefined && "match" in read) {
    const parts = read.clauses.map((each) => partOf(language, each));
    return newGroup(parts, read.match);
  }
  // A condition that would become another clause is none: values with commas, or of several kinds.
  if (read !== undefined && equals(language.schema, language.compare(read), clause)) {
    return { kind: "condition", id: nextId(), ...read };
  }
  const json = JSON.stringify(toJson(language.schema, clause), null, 2);
  return { kind: "other", id: nextId(), text: json, json };
}

/** What keeps a text from being a clause; undefined: it is one, for the server to check. */
export function unreadable<S extends DescMessage>({ schema }: Language<S>, text: string): string | undefined {
  try {
    fromJsonString(schema, text);
    return undefined;
  } catch (error) {
    return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The path of each part in the clause, as errors of the API name it. */
export type Places = Map<string, number>;

/** The clause of a draft; undefined when it holds no condition. Fills `places`. */
export function clauseOfDraft<S extends DescMessage>(
  language: Language<S>,
  draft: Draft,
  places: Places = new Map(),
  path = "",
): MessageShape<S> | undefined {
  if (isEmpty(draft)) return undefined;
  if (draft.kind !== "group") {
    places.set(path, draft.id);
    return draft.kind === "other" ? fromJsonString(language.schema, draft.json) : language.compare(draft);
  }
  const { match } = draft;
  const held = draft.parts.filter((part) => !isEmpty(part));
  const single = held.length === 1;
  const clauses = held.flatMap((part, at) => {
    const clause = clauseOfDraft(
      language,
      part,
      places,
      path + (single ? singlePaths : paths)[match].replace("#", `${at}`),
    );
    return clause === undefined ? [] : [clause];
  });
  const [first] = clauses;
  return single && match !== "none" ? first : language.join(match, clauses);
}

const paths: Readonly<Record<Match, string>> = {
  all: ".and.clauses[#]",
  any: ".or.clauses[#]",
  none: ".not.clause.or.clauses[#]",
};
const singlePaths: Readonly<Record<Match, string>> = { all: "", any: "", none: ".not.clause" };

const isEmpty = (draft: Draft): boolean =>
  draft.kind === "group" ? draft.parts.every(isEmpty) : draft.kind === "condition" && draft.field === "";

/** How many conditions a clause holds. */
export function conditionCount<S extends DescMessage>(language: Language<S>, clause: MessageShape<S> | undefined) {
  const count = (draft: Draft): number =>
    draft.kind === "group" ? draft.parts.reduce((sum, part) => sum + count(part), 0) : 1;
  return count(draftOf(language, clause));
}
