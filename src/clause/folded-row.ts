import type { FieldValue, Literal, Values } from "./field.ts";
import { fold } from "./fold.ts";
import { containsText, type TextAutomaton } from "./text-automaton.ts";
import { elements } from "./to-predicate.ts";

/** The values of one field of a row, each text in lower case as `fold` makes it. */
export interface FoldedField {
  /** What comparisons see; none: the row has no value. */
  readonly elements: readonly Literal[];
  /** Whether a text among them contains this one, which is in lower case. */
  contains(needle: string): boolean;
  /** What its texts contain of the needles of the field's automaton; undefined: the field has none. */
  found(): ReadonlySet<string> | undefined;
}

/** A row as triggers compare it: each field is read and folded once, however many comparisons look at it. */
export interface FoldedRow {
  /** Undefined: rows have no such field. */
  field(name: string): FoldedField | undefined;
}

/** Fields by name, with what finds many texts in them at once. */
export interface FoldedFields<Row> {
  readonly values: Pick<Values<Row>, "field">;
  /** By field; absent: texts are looked for one by one. */
  readonly automata?: ReadonlyMap<string, TextAutomaton>;
}

/** After so many searches in one field of a row all of its needles are looked for at once. */
const singlesMax = 8;
const noField: FoldedField = { elements: [], contains: () => false, found: () => undefined };

function foldValue(value: FieldValue | undefined): FieldValue | undefined {
  if (typeof value === "string") return fold(value);
  return Array.isArray(value) ? value.map((item) => (typeof item === "string" ? fold(item) : item)) : value;
}

/** The row, which must not change from now on. */
export function foldedRow<Row>(row: Row, { values, automata }: FoldedFields<Row>): FoldedRow {
  const known = new Map<string, FoldedField | undefined>();
  function read(name: string): FoldedField | undefined {
    const field = values.field(name);
    if (field === undefined) return undefined;
    const value = foldValue(field.get(row));
    return value === undefined || value === null ? noField : foldedField(elements(value), automata?.get(name));
  }
  return {
    field(name) {
      const there = known.get(name);
      if (there !== undefined || known.has(name)) return there;
      const made = read(name);
      known.set(name, made);
      return made;
    },
  };
}

function foldedField(elements: readonly Literal[], automaton: TextAutomaton | undefined): FoldedField {
  const texts = elements.filter((element) => typeof element === "string");
  let all: ReadonlySet<string> | undefined;
  let singles = 0;
  function found(): ReadonlySet<string> | undefined {
    if (automaton === undefined || all !== undefined) return all;
    const each = texts.map((text) => automaton.search(text));
    all = each.length === 1 ? each[0] : new Set(each.flatMap((found) => [...found]));
    return all;
  }
  return {
    elements,
    found,
    contains(needle) {
      if (all === undefined && automaton !== undefined && ++singles > singlesMax) found();
      if (all?.has(needle)) return true;
      if (all !== undefined && automaton?.has(needle)) return false;
      return texts.some((text) => containsText(text, needle));
    },
  };
}
