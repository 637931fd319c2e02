import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { type BrokenRule, invalidField, invalidFields } from "../errors.ts";
import { type Pace, unpaced } from "../event-loop.ts";
import {
  answerOf,
  type ComparisonResult,
  compareExpression,
  countExpression,
  type Expression,
  type ExpressionCount,
  expressionTrouble,
  type Later,
  negated,
  newExpressionCount,
  readExpression,
} from "./expression.ts";

export type MatcherOperator = "=" | "!=" | "=~" | "!~";

/** What a matcher is made of. */
export interface MatcherParts {
  readonly name: string;
  readonly operator: MatcherOperator;
  readonly value: string;
}

/** A matcher of labels, ready to be asked. */
export interface LabelMatcher extends MatcherParts {
  /** Undefined where it asks for a text. */
  readonly expression: Expression | undefined;
  /** Compares one value; an absent label is the empty text, which is answered at once. */
  matches(value: string, pace: Pace): Later<ComparisonResult>;
}

/** Why a text is no matcher; `column` counts its code points from 1. */
export interface MatcherMistake {
  column: number;
  reason: string;
}

export const matcherCharactersMax = 2048;
const expressionCharactersMax = 1000;

const plainName = /^[a-zA-Z_:][a-zA-Z0-9_:]*/;
const blanks = /^[\t\n\f\r ]*/;
const operators = /^(?:=~|!~|!=|=)/;
const quoted = /^"(?:[^"\\]|\\.)*"/s;

const quoteInValue = 'a value holds " only in quotes and after a backslash';

/**
 * Reads a matcher as Alertmanager writes it, `name="value"`, with `=`, `!=`, `=~` or `!~`. A value may go without quotes up to the end
 * of the text; a name that is no plain word is quoted. One that is stored may have an expression that would be refused today.
 */
export function readMatcher(text: string, stored = false): LabelMatcher | MatcherMistake {
  const mistake = (at: number, reason: string): MatcherMistake => ({
    column: codePoints(text.slice(0, at)) + 1,
    reason,
  });
  if (codePoints(text) > matcherCharactersMax)
    return mistake(0, `a matcher has at most ${matcherCharactersMax} characters`);
  let at = 0;
  const take = (form: RegExp) => {
    const [found] = form.exec(text.slice(at)) ?? [];
    at += found?.length ?? 0;
    return found;
  };
  take(blanks);
  const nameAt = at;
  const bare = text[at] === '"' ? take(quoted) : take(plainName);
  if (bare === undefined)
    return mistake(nameAt, "a matcher begins with the name of a label, in quotes if it is no word");
  const name = bare.startsWith('"') ? unescaped(bare.slice(1, -1)) : bare;
  if (name === "") return mistake(nameAt, "the name of a label is not empty");
  take(blanks);
  const operator = take(operators) as MatcherOperator | undefined;
  if (operator === undefined) return mistake(at, "=, !=, =~ or !~ follows the name");
  take(blanks);
  const end = text.length - (/[\t\n\f\r ]*$/.exec(text.slice(at))?.[0].length ?? 0);
  const raw = readValue(text, at, end);
  if (typeof raw === "number") return mistake(raw, quoteInValue);
  const value = unescaped(raw.text);
  const isExpression = operator === "=~" || operator === "!~";
  if (isExpression && !stored && codePoints(value) > expressionCharactersMax)
    return mistake(raw.from, `an expression has at most ${expressionCharactersMax} characters`);
  const matcher = labelMatcher({ name, operator, value });
  const refusal = matcher.expression?.refusal;
  if (stored || refusal === undefined) return matcher;
  return mistake(sourceAt(text, raw.from, refusal.at), refusal.reason);
}

/** Makes a matcher whose parts were checked when they were stored. */
export function labelMatcher({ name, operator, value }: MatcherParts): LabelMatcher {
  if (operator === "=" || operator === "!=") {
    const equal = operator === "=";
    return { name, operator, value, expression: undefined, matches: (label) => (label === value) === equal };
  }
  const expression = readExpression(value, true);
  const matches =
    operator === "=~"
      ? (label: string, pace: Pace) => compareExpression(expression, label, pace)
      : (label: string, pace: Pace) => negated(compareExpression(expression, label, pace));
  return { name, operator, value, expression, matches };
}

/** The value between two places, as it is written; the place of a quotation mark that may not be there. */
function readValue(text: string, from: number, end: number): { text: string; from: number } | number {
  const inQuotes = text[from] === '"' && end > from;
  const start = inQuotes ? from + 1 : from;
  for (let i = start; i < end; i++) {
    if (text[i] === "\\" && i + 1 < end) i += 1;
    else if (text[i] === '"') return inQuotes && i === end - 1 ? { text: text.slice(start, i), from: start } : i;
  }
  return inQuotes ? from : { text: text.slice(start, end), from: start };
}

const escape = /\\([n"\\])/g;
const unescaped = (text: string) => text.replaceAll(escape, (_, c: string) => (c === "n" ? "\n" : c));

/** The place in a matcher's text of a code point of its value, which escapes make shorter. */
function sourceAt(text: string, from: number, codePoint: number): number {
  let at = from;
  for (let i = 0; i < codePoint && at < text.length; i++) {
    if (/^\\[n"\\]/.test(text.slice(at, at + 2))) at += 2;
    else at += (text.codePointAt(at) as number) > 0xffff ? 2 : 1;
  }
  return at;
}

/** Names a label among the fields of rows: no clause can, since it holds NUL. */
export const labelField = (name: string) => `${labelMark}${name}`;
const labelMark = "\0label ";

/** Returns the label that a field stands for; undefined: it is another field. */
export const labelOfField = (field: string): string | undefined =>
  field.startsWith(labelMark) ? field.slice(labelMark.length) : undefined;

/** Says where a text is wrong, in the words that every door uses. */
export const mistakeText = ({ column, reason }: MatcherMistake) => `column ${column}: ${reason}`;

/**
 * Reads a list of matchers, all of which must hold. @param path the list's place in the request, for errors
 * @param count what else counts together with their expressions
 * @throws code 3 with the column of each mistake
 */
export function readMatchers(
  texts: readonly string[],
  path: string,
  count: ExpressionCount = newExpressionCount(),
): LabelMatcher[] {
  const broken: BrokenRule[] = [];
  const matchers = texts.flatMap((text, i) => {
    const read = readMatcher(text);
    if ("column" in read) {
      broken.push({ path: `${path}[${i}]`, rule: mistakeText(read), id: FieldRule.CONDITION });
      return [];
    }
    if (read.expression !== undefined) countExpression(count, read.expression, path);
    return [read];
  });
  if (broken.length > 0) throw invalidFields(broken);
  return matchers;
}

/** Reads matchers that are stored: what would be refused today is compared within the bounds of today. @throws code 3 for what are none */
export function storedMatchers(texts: readonly string[], path: string): LabelMatcher[] {
  return texts.map((text, i) => {
    const read = readMatcher(text, true);
    if (!("column" in read)) return read;
    throw invalidField(`${path}[${i}]`, mistakeText(read), FieldRule.CONDITION);
  });
}

/** Joins what is wrong with one thing; empty: nothing is. */
export const joinedTroubles = (troubles: readonly string[]) => troubles.filter((trouble) => trouble !== "").join("; ");

/** Says of these matchers, each by itself, which has a value that was hardly meant, and which leaves values undecided; empty: none. */
export function matchersTrouble(matchers: readonly LabelMatcher[]): string {
  const troubles = matchers.map((matcher) => {
    const trouble = matcher.expression === undefined ? "" : expressionTrouble(matcher.expression);
    return trouble === "" ? "" : `${matcherText(matcher)}: ${trouble}`;
  });
  return joinedTroubles([doubledSign(matchers), troubles.find((trouble) => trouble !== "") ?? ""]);
}

/** `alertname==X` asks for `=X`, as it does in Alertmanager. */
function doubledSign(matchers: readonly LabelMatcher[]): string {
  const doubled = matchers.find(({ operator, value }) => operator === "=" && value.startsWith("="));
  if (doubled === undefined) return "";
  const meant = matcherText({ ...doubled, value: doubled.value.slice(1) });
  return `${matcherText(doubled)}: its value begins with "="; did you mean ${meant}?`;
}

/** The same of matchers all of which must hold, also where two of them exclude each other. */
export const allMatchersTrouble = (matchers: readonly LabelMatcher[]): string =>
  joinedTroubles([exclusion(matchers, "nothing matches"), matchersTrouble(matchers)]);

/** What the expressions of one list may have together to be compared here: 64 instructions compile in 3 ms. */
const exclusionInstructionsMax = 64;

/** Says which two of these matchers, all of which must hold, exclude each other, and what follows; empty: none do. */
export function exclusion(matchers: readonly LabelMatcher[], effect: string): string {
  let instructions = 0;
  // Where another has the same value, it excludes the same.
  for (const ofLabel of Map.groupBy(matchers, ({ name }) => name).values()) {
    const equal = ofLabel.find(({ operator }) => operator === "=");
    if (equal === undefined) continue;
    for (const other of ofLabel) {
      instructions += other.expression?.size?.instructions ?? 0;
      if (instructions > exclusionInstructionsMax) return "";
      if (other.matches(equal.value, unpaced) === false)
        return `${matcherText(equal)} and ${matcherText(other)} exclude each other: ${effect}`;
    }
  }
  return "";
}

/** Writes a matcher so that `readMatcher` reads the same one. */
export function matcherText({ name, operator, value }: MatcherParts): string {
  const word = plainName.exec(name)?.[0] === name ? name : inQuotes(name);
  return `${word}${operator}${inQuotes(value)}`;
}

const inQuotes = (text: string) => `"${text.replaceAll(/[\\"\n]/g, (c) => (c === "\n" ? "\\n" : `\\${c}`))}"`;

/** Compares labels with matchers, all of which must hold. @param labelOf returns a label's value, the empty text where there is none */
export function allMatch(
  matchers: readonly LabelMatcher[],
  labelOf: (name: string) => string,
  pace: Pace,
): Later<ComparisonResult> {
  return answerOf(matchers, (matcher) => matcher.matches(labelOf(matcher.name), pace), false);
}

/** Counts the characters of a text as people see them, not UTF-16's units. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
