import type { FieldValue, Literal, RowValues, ValueField } from "./field.ts";
import { fold } from "./fold.ts";
import { labelField } from "./label-matcher.ts";
import { containsText, type TextAutomaton } from "./text-automaton.ts";
import { elementsOf } from "./to-predicate.ts";

/** The values of one field of a row, each text in lower case as `fold` makes it. */
export interface FoldedField {
  /** What comparisons see; none: the row has no value. */
  readonly elements: readonly Literal[];
  /** Finds all needles of the field at once; undefined: there are few. */
  readonly automaton: TextAutomaton | undefined;
  /** What it has found; undefined: it was not asked yet. */
  all: ReadonlySet<string> | undefined;
  /** How many texts were looked for one by one. */
  singles: number;
}

/** A row as triggers compare it: each field is read and folded once, however many comparisons look at it. */
export interface FoldedRow {
  readonly known: Map<string, FoldedField | undefined>;
  read(name: string): FoldedField | undefined;
  /** Returns the value of a label as it is; empty where there is none. */
  label(name: string): string;
}

/** Fields by name, with what finds many texts in them at once. */
export interface FoldedFields<Row> {
  readonly values: Pick<RowValues<Row>, "field">;
  /** By field; absent: texts are looked for one by one. */
  readonly automata?: ReadonlyMap<string, TextAutomaton>;
}

/** After this many searches in one field of a row all of its needles are looked for at once. */
const singlesMax = 8;

function foldValue(value: FieldValue | undefined): FieldValue | undefined {
  if (typeof value === "string") return fold(value);
  return Array.isArray(value) ? value.map((item) => (typeof item === "string" ? fold(item) : item)) : value;
}

function foldedField<Row>(field: ValueField<Row>, row: Row, automaton: TextAutomaton | undefined): FoldedField {
  const value = foldValue(field.get(row));
  const own = typeof value === "string" ? [value] : elementsOf(value);
  return { elements: own, automaton, all: undefined, singles: 0 };
}

/** The row, which must not change from now on. */
export function foldedRow<Row>(row: Row, { values, automata }: FoldedFields<Row>): FoldedRow {
  return {
    known: new Map(),
    read(name) {
      const field = values.field(name);
      return field && foldedField(field, row, automata?.get(name));
    },
    label(name) {
      const value = values.field(labelField(name))?.get(row);
      return typeof value === "string" ? value : "";
    },
  };
}

/** A field of a row; undefined: rows have no such field. */
export function fieldOf(row: FoldedRow, name: string): FoldedField | undefined {
  const { known } = row;
  const there = known.get(name);
  if (there !== undefined || known.has(name)) return there;
  const made = row.read(name);
  known.set(name, made);
  return made;
}

const textsOf = ({ elements }: FoldedField) => elements.filter((element) => typeof element === "string");

/** What the texts of a field contain of the needles of its automaton; undefined: it has none. */
export function needlesIn(field: FoldedField): ReadonlySet<string> | undefined {
  const { automaton } = field;
  if (automaton === undefined || field.all !== undefined) return field.all;
  const each = textsOf(field).map((text) => automaton.search(text));
  field.all = each.length === 1 ? each[0] : new Set(each.flatMap((found) => [...found]));
  return field.all;
}

/** Whether a text of a field contains this one, which is in lower case. */
export function containsFolded(field: FoldedField, needle: string): boolean {
  const { automaton } = field;
  if (automaton !== undefined && field.all === undefined && ++field.singles > singlesMax) needlesIn(field);
  if (field.all !== undefined) {
    if (field.all.has(needle)) return true;
    if (automaton?.has(needle)) return false;
  }
  return field.elements.some((element) => typeof element === "string" && containsText(element, needle));
}
