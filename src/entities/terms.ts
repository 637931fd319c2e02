import type { Fragment } from "postgres";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Comparison, Condition, Literal } from "../clause/field.ts";
import { numericText } from "../clause/numeric-text.ts";
import type { Db } from "../db/connect.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { nextAbove, numberTerms } from "./number-terms.ts";

/** A term of the index over entities, or with `prefix` all that begin with it. */
export interface EntityTerm {
  text: string;
  prefix?: boolean;
}

/**
 * Terms of which every row that satisfies a condition has one; `exact`: every row that has one satisfies it; `broad`: many
 * rows may have one, as far as the condition shows.
 */
export interface Terms {
  terms: EntityTerm[];
  exact: boolean;
  broad?: boolean;
}

// As the function in migrations/0001_first_release.sql cuts them.
const PAIR_CHARACTERS = 400;
const KEY_CHARACTERS = 100;
const VALUE_CHARACTERS = 64;

/** The first characters of a text, and whether that is less than all that may be stored. */
function cut(text: string, charactersMax: number): { text: string; short: boolean } {
  if (text.length < charactersMax) return { text, short: true };
  const characters = [...text];
  return { text: characters.slice(0, charactersMax).join(""), short: characters.length < charactersMax };
}

/** How the kinds of values of a field are spelled as terms. Undefined: terms do not show it. */
interface Spelling {
  text(value: string, prefix: boolean): { term: EntityTerm; exact: boolean };
  /** Numbers within bounds; `texts`: also texts that read as such a number. */
  numbers?(low: number, high: number, texts: boolean): Terms;
  boolean?(value: boolean): EntityTerm;
}

/** The terms of dimensions: pairs as JSON spells them, without the quotes around them. */
function dimensionSpelling(key: string): Spelling {
  return {
    text(value, prefix) {
      const { text, short } = cut(pairOf(key, value), PAIR_CHARACTERS);
      return { term: { text: `d${text}`, prefix: prefix || !short }, exact: short };
    },
  };
}

function pairOf(key: string, value: string): string {
  return `${JSON.stringify(key).slice(1)}: ${JSON.stringify(value).slice(0, -1)}`;
}

/** The terms of other properties: `m` what metadata make, `c` custom properties. */
function propertySpelling(source: "m" | "c", key: string): Spelling {
  const length = [...key].length;
  const field = `${source}${length}:${cut(key, KEY_CHARACTERS).text}`;
  const whole = length <= KEY_CHARACTERS;
  return {
    text(value, prefix) {
      const { text, short } = cut(value, VALUE_CHARACTERS);
      return { term: { text: `${field}t${text}`, prefix: prefix && short }, exact: whole && short };
    },
    numbers(low, high, texts) {
      const { terms, exact } = numberTerms(low, high, texts);
      return { terms: terms.map((term) => ({ ...term, text: field + term.text })), exact: exact && whole };
    },
    boolean: (value) => ({ text: `${field}b${value}` }),
  };
}

/*
 * All terms of an entity share 1 MiB, the most that a tsvector holds. Name and dimensions take a tenth of it at most; the
 * rest is shared out between what metadata make and custom properties.
 */
const coreTermsBytesMax = 512 * 1024;
export const customTermsBytesMax = 384 * 1024;

// This many values make fewer bytes than either bound, whatever they are.
const uncountedValues = 300;

/** Bytes of the terms that properties make, in each property; undefined when they are certainly few. */
export function termsBytes(source: "m" | "c", properties: Record<string, unknown>): Map<string, number> | undefined {
  const lists = Object.entries(properties).map(
    ([key, value]) => [key, Array.isArray(value) ? value : [value]] as const,
  );
  if (lists.reduce((sum, [, list]) => sum + list.length, 0) <= uncountedValues) return undefined;
  const owner = "0".repeat(8);
  const bytes = new Map<string, number>();
  for (const [key, list] of lists) {
    const spelling = propertySpelling(source, key);
    const own = new Set<string>();
    for (const value of list) {
      const made =
        typeof value === "number" ? spelling.numbers?.(value, value, false) : equals(spelling, value as Literal);
      for (const { text } of made?.terms ?? []) own.add(text);
    }
    let sum = 0;
    for (const text of own) sum += Buffer.byteLength(owner + text);
    bytes.set(key, sum);
  }
  return bytes;
}

/** Whether properties make more terms than their part of the index holds. */
export function isOverfull(source: "m" | "c", properties: Record<string, unknown>): boolean {
  const bytes = termsBytes(source, properties);
  if (bytes === undefined) return false;
  return (
    [...bytes.values()].reduce((sum, each) => sum + each, 0) >
    (source === "m" ? coreTermsBytesMax : customTermsBytesMax)
  );
}

function union(parts: readonly (Terms | undefined)[]): Terms | undefined {
  if (!parts.every((part) => part !== undefined)) return undefined;
  return {
    terms: parts.flatMap(({ terms }) => terms),
    exact: parts.every(({ exact }) => exact),
    broad: parts.some(({ broad }) => broad),
  };
}

function equals({ text, numbers, boolean }: Spelling, value: Literal): Terms | undefined {
  if (typeof value === "boolean") {
    return { terms: boolean === undefined ? [] : [boolean(value)], exact: true, broad: true };
  }
  if (typeof value === "number") return numbers?.(value, value, true);
  const { term, exact } = text(value, false);
  const number = numericText(value);
  const same = { terms: [term], exact };
  return number === undefined || numbers === undefined ? same : union([same, numbers(number, number, false)]);
}

function numberRange({ numbers }: Spelling, condition: Condition): Terms | undefined {
  let low = -Number.MAX_VALUE;
  let high = Number.MAX_VALUE;
  for (const { operation, value } of condition as { operation: number; value: number }[]) {
    if (operation === Operation.OP_GREATER) low = Math.max(low, nextAbove(value));
    else if (operation === Operation.OP_GREATER_OR_EQ) low = Math.max(low, value);
    else if (operation === Operation.OP_LESS) high = Math.min(high, -nextAbove(-value));
    else high = Math.min(high, value);
  }
  const found = numbers?.(low, high, true);
  return found && { ...found, broad: condition.length < 2 };
}

/** Bounds of texts alone: all texts that begin with what the bounds have in common, and the numbers where they read as such. */
function textRange(spelling: Spelling, condition: Condition): Terms | undefined {
  const texts = condition.map(({ value }) => value as string);
  const lower = condition.find(({ operation }) => isLower(operation))?.value as string | undefined;
  const upper = condition.find(({ operation }) => !isLower(operation))?.value as string | undefined;
  const { term } = spelling.text(commonBeginning(lower ?? "", upper ?? ""), true);
  const within: Terms = { terms: [term], exact: false, broad: true };
  if (spelling.numbers === undefined || !texts.every((text) => numericText(text) !== undefined)) return within;
  const asNumbers = condition.map((part) => ({ ...part, value: numericText(part.value as string) }) as Comparison);
  return union([within, numberRange(spelling, asNumbers)]);
}

function commonBeginning(a: string, b: string): string {
  const left = [...a];
  const right = [...b];
  const end = left.findIndex((character, i) => character !== right[i]);
  return (end < 0 ? left : left.slice(0, end)).join("");
}

const isLower = (operation: number) => operation === Operation.OP_GREATER || operation === Operation.OP_GREATER_OR_EQ;
const isUpper = (operation: number) => operation === Operation.OP_LESS || operation === Operation.OP_LESS_OR_EQ;

function termsOf(spelling: Spelling, condition: Condition): Terms | undefined {
  if (condition.every(({ operation }) => isLower(operation) || isUpper(operation))) {
    if (condition.every(({ value }) => typeof value === "number")) return numberRange(spelling, condition);
    return condition.every(({ value }) => typeof value === "string") ? textRange(spelling, condition) : undefined;
  }
  const [only] = condition;
  switch (only?.operation) {
    case Operation.OP_EQUALS:
      return equals(spelling, only.value);
    case Operation.OP_IN:
      return union(only.value.map((value) => equals(spelling, value)));
    case Operation.OP_STARTS_WITH: {
      const { term, exact } = spelling.text(only.value, true);
      return { terms: [term], exact, broad: true };
    }
  }
  return undefined;
}

/** Terms for a condition on a dimension; undefined when they do not help. */
export function dimensionTerms(key: string, condition: Condition): Terms | undefined {
  return termsOf(dimensionSpelling(key), condition);
}

/** Terms for a condition on a custom property. */
export function customPropertyTerms(key: string, condition: Condition): Terms | undefined {
  return termsOf(propertySpelling("c", key), condition);
}

/** Terms for a condition on a core property: a dimension, or what metadata make where there is no such dimension. */
export function corePropertyTerms(key: string, condition: Condition): Terms | undefined {
  return union([dimensionTerms(key, condition), termsOf(propertySpelling("m", key), condition)]);
}

// More of them read more lists, and leave no fewer rows.
const piecesMax = 32;

/**
 * Terms that the name has in which these texts occur, all of them: each three characters in a row, in lower case.
 * Undefined when the texts are too short to have any.
 */
export function nameTerms(texts: readonly string[]): EntityTerm[] | undefined {
  const pieces = new Set<string>();
  for (const text of texts) {
    const characters = [...text];
    for (let i = 3; i <= characters.length && pieces.size < piecesMax; i++)
      pieces.add(characters.slice(i - 3, i).join(""));
  }
  return pieces.size === 0 ? undefined : [...pieces].map((piece) => ({ text: `n${piece}` }));
}

/** What entities_terms is asked: a tsquery for entities of the tenant that have one of the terms, or all of them. */
export function termsQuery(tenantId: string, need: "one" | "all", terms: readonly EntityTerm[]): string {
  const owner = tenantId.slice(-8); // as in migrations/0001_first_release.sql
  return terms
    .map(({ text, prefix }) => `'${(owner + text).replace(/['\\]/g, "$&$&")}'${prefix ? ":*" : ""}`)
    .join(need === "one" ? " | " : " & ");
}

// A tsquery holds 1 MiB, and PostgreSQL walks through it by recursion.
const queryTermsMax = 1000;

/** SQL that entities_terms answers: true for entities of the tenant that have one of the terms, or all of them. */
export function haveTerms(db: Db, tenantId: string, need: "one" | "all", terms: readonly EntityTerm[]): Fragment {
  const has = (some: readonly EntityTerm[]) => {
    const query = termsQuery(tenantId, need, some);
    return db`entity_terms(tenant_id, name, dimensions, core_properties, custom_properties) @@ ${query}::text::tsquery`;
  };
  if (terms.length <= queryTermsMax) return has(terms);
  const parts: Fragment[] = [];
  for (let from = 0; from < terms.length; from += queryTermsMax)
    parts.push(has(terms.slice(from, from + queryTermsMax)));
  return sqlJoin(db, parts, need === "one" ? "or" : "and");
}
