import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type Condition, comparisons, type Draft, draftOf, type Language, withoutValue } from "./draft.ts";
import { valueWord } from "./fields.ts";

/** A clause in words, for lists: what it says, in the words of the editor. */
export function clauseWords<S extends DescMessage>(language: Language<S>, clause: MessageShape<S>): string {
  return wordsOf(draftOf(language, clause), true);
}

function wordsOf(draft: Draft, outermost = false): string {
  if (draft.kind === "condition") return conditionWords(draft);
  if (draft.kind === "other") return draft.json.replace(/\s+/g, " ");
  const parts = draft.parts.map((part) => wordsOf(part));
  const text = parts.join(draft.match === "all" ? " and " : " or ");
  if (draft.match === "none") return `not (${text})`;
  return outermost || parts.length === 1 ? text : `(${text})`;
}

function conditionWords({ field, operation, value, valueKind }: Condition): string {
  const word = comparisons.find(({ name }) => name === operation)?.word ?? operation;
  if (withoutValue(operation)) return `${field} ${word}`;
  if (valueKind === "boolean") return `${field} ${word} ${value === "true" ? "yes" : "no"}`;
  const known = valueWord(field, value);
  return `${field} ${word} ${known !== value || valueKind === "number" ? known : `“${value}”`}`;
}
