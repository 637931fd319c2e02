import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { askedLabelsOf, askedOf, type Checked } from "./checked.ts";
import { withNumbers } from "./enumeration.ts";
import type { Comparison, Literal, RowValues, ValueField } from "./field.ts";
import { fold } from "./fold.ts";
import { labelField } from "./label-matcher.ts";
import { numericText } from "./numeric-text.ts";

/** A field with one of its elements, as a key of an index: what compares as equal has a key in common. */
export interface Equality {
  field: string;
  key: string;
}

/** A text, in lower case, that a field is asked to contain. */
export interface Needle {
  field: string;
  text: string;
}

/** Fields, with the names of enumerations in lower case, as the texts of triggers are. */
export type FoldedNames = Pick<RowValues<never>, "field">;

/** The same fields with the names of their enumerations in lower case. */
export function withFoldedNames<Row>(values: RowValues<Row>): FoldedNames {
  return {
    field(key) {
      const field = values.field(key);
      if (field?.numbers === undefined) return field;
      const numbers = Object.entries(field.numbers).map(([name, number]) => [fold(name), number]);
      return { ...field, numbers: Object.fromEntries(numbers) };
    },
  };
}

/** The equalities of which a row that matches has at least one: the fewest, as `CompiledTrigger.needs` says. */
export function needsOf(clause: Checked, values: FoldedNames): readonly Equality[] | undefined {
  switch (clause.kind) {
    case "and": {
      const each = clause.parts.flatMap((part) => {
        const needs = needsOf(part, values);
        return needs === undefined ? [] : [needs];
      });
      return each.sort((a, b) => a.length - b.length)[0];
    }
    case "or": {
      const each = clause.parts.map((part) => needsOf(part, values));
      return each.every((needs) => needs !== undefined) ? each.flat() : undefined;
    }
    case "field": {
      const field = values.field(clause.field);
      if (field === undefined) return [];
      const wanted = clause.asks === "exists" ? undefined : equalTo(field, clause.asks);
      return wanted?.flatMap((value) => literalKeys(value).map((key) => ({ field: clause.field, key })));
    }
    case "label": {
      const { name, operator, value } = clause.matcher;
      if (operator !== "=" || value === "") return undefined;
      // What differs in case alone is told apart afterwards.
      return literalKeys(fold(value)).map((key) => ({ field: labelField(name), key }));
    }
    default:
      return undefined;
  }
}

function equalTo(
  field: Pick<ValueField<never>, "numbers">,
  condition: readonly Comparison[],
): readonly Literal[] | undefined {
  const [only] = withNumbers(field, condition);
  if (only?.operation === Operation.OP_EQUALS) return [only.value];
  return only?.operation === Operation.OP_IN ? only.value : undefined;
}

/*
 * How values compare as equal: texts as texts, numbers as numbers, and a number with a text that reads as it. So two texts
 * meet in `text`, two numbers in `number`; a wanted number meets all that reads as it, a wanted text the number it reads as.
 */

function literalKeys(value: Literal): string[] {
  if (typeof value === "boolean") return [`boolean ${value}`];
  if (typeof value === "number") return [`reads as ${value}`];
  const number = numericText(value);
  return number === undefined ? [`text ${value}`] : [`text ${value}`, `number ${number}`];
}

/** The keys that the elements of a row's field, in lower case, have in an index over `needs`. */
export function equalityKeys(elements: readonly Literal[]): string[] {
  return elements.flatMap((element) => {
    if (typeof element === "boolean") return [`boolean ${element}`];
    if (typeof element === "number") return [`number ${element}`, `reads as ${element}`];
    const number = numericText(element);
    return number === undefined ? [`text ${element}`] : [`text ${element}`, `reads as ${number}`];
  });
}

/** The texts of which a row that matches contains at least one: of an `and` those that are likely to be rare. */
export function needlesOf(clause: Checked): readonly Needle[] | undefined {
  switch (clause.kind) {
    case "and": {
      const each = clause.parts.flatMap((part) => {
        const needles = needlesOf(part);
        return needles === undefined ? [] : [needles];
      });
      return each.sort((a, b) => rarity(b) - rarity(a))[0];
    }
    case "or": {
      const each = clause.parts.map(needlesOf);
      return each.every((needles) => needles !== undefined) ? each.flat() : undefined;
    }
    case "field": {
      const only = clause.asks === "exists" ? undefined : clause.asks[0];
      if (only?.operation !== Operation.OP_CONTAINS || only.value === "") return undefined;
      return [{ field: clause.field, text: only.value }];
    }
    default:
      return undefined;
  }
}

/** The length of the shortest one: the longer a text, the fewer rows contain it. */
const rarity = (needles: readonly Needle[]) => Math.min(...needles.map(({ text }) => text.length)) / needles.length;

/** How many texts the comparisons of a clause compare with. */
export function textComparisons(clause: Checked): number {
  const asked = askedOf(clause).reduce((sum, { asks }) => (asks === "exists" ? sum : sum + texts(asks)), 0);
  return asked + askedLabelsOf(clause).length;
}

const texts = (condition: readonly Comparison[]) =>
  condition.flatMap(({ value }) => value).filter((value) => typeof value === "string").length;
