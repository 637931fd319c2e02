import Mustache from "mustache";

// Templates come from users: the library would keep each one for good.
Mustache.templateCache = undefined;

/** A part of a template as the library's parser gives it; a section has its tokens at the end. */
type Token = readonly [kind: string, value: string, start: number, end: number, inner?: readonly Token[]];

const parsed = (template: string) => Mustache.parse(template) as unknown as readonly Token[];

/** A stored template that cannot be parsed: another parser took it. */
export class TemplateError extends Error {}

function tokensOf(template: string): readonly Token[] {
  try {
    return parsed(template);
  } catch (error) {
    throw new TemplateError(`the template cannot be parsed: ${(error as Error).message}`);
  }
}

const sectionsDeepMax = 32;
const tagCharsMax = 300;
const blanksMax = 1000;
/** With other delimiters the parser looks for each tag's kind to the end of the template: its time grows with the square. */
const otherDelimitersCharsMax = 4096;
const otherDelimiters = /\{\{\s*=/;
/** How much of a name is quoted in an error. */
const quotedCharsMax = 64;

/** The most that one template renders, characters; what is beyond is cut. */
export const renderedCharsMax = 256 * 1024;

/** The parts of a template that are visited at most, those in lists once for each of their values. */
const partsMax = 100_000;

/** What a template reads: texts by name, within groups by name. Nothing of it is ever called. */
export interface Variables {
  readonly [name: string]: Value | undefined;
}

export type Value = string | number | boolean | null | Verbatim | Variables | readonly Value[];

/** A text that is markup already: it comes into the result as it is. */
export class Verbatim {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** How values come into a text, by what stands before them: those of `{{a}}`, and those of `{{{a}}}` and `{{&a}}`. */
export interface Escaping {
  readonly double: (text: string, before?: string) => string;
  readonly triple: (text: string, before?: string) => string;
  /** How any value comes in, whatever braces it has; absent: as a text. */
  readonly value?: (value: Value | undefined, before: string) => string;
}

/** A run of blanks that is too long: the parser's time grows with its square. */
const longBlanks = new RegExp(`(?<!\\s)(\\s{${blanksMax}})\\s+`, "g");

/** Returns why a text is no Mustache template, with line and column, to read on after its path; undefined when it is one. */
export function brokenTemplate(template: string): string | undefined {
  const place = (index: number) => {
    const before = template.slice(0, index).split("\n");
    return `line ${before.length}, column ${(before.at(-1) as string).length + 1}`;
  };
  const brokenToken = ([kind, value, start, end, inner]: Token, depth: number): string | undefined => {
    if (kind === ">")
      return `has a partial ({{> ${value.slice(0, quotedCharsMax)}}}) at ${place(start)}: there are none`;
    if (kind !== "text" && end - start > tagCharsMax)
      return `has a tag of more than ${tagCharsMax} characters at ${place(start)}`;
    if (inner === undefined) return undefined;
    if (depth === sectionsDeepMax) return `has sections more than ${sectionsDeepMax} deep at ${place(start)}`;
    return firstBroken(inner, depth + 1);
  };
  const firstBroken = (tokens: readonly Token[], depth: number): string | undefined => {
    for (const token of tokens) {
      const broken = brokenToken(token, depth);
      if (broken !== undefined) return broken;
    }
    return undefined;
  };
  const blanks = template.search(longBlanks);
  if (blanks >= 0) return `has more than ${blanksMax} blanks in a row at ${place(blanks)}`;
  if (template.length > otherDelimitersCharsMax && otherDelimiters.test(template))
    return `changes its delimiters, and has more than ${otherDelimitersCharsMax} characters`;
  try {
    return firstBroken(parsed(template), 0);
  } catch (error) {
    return `is no Mustache template: ${syntaxError((error as Error).message, place)}`;
  }
}

/** Rewrites an error of the parser, such as `Unclosed section "event" at 17`: offsets become places, long names are cut. */
function syntaxError(message: string, place: (index: number) => string): string {
  const [, what = message, name, index] = /^(.*?)(?: "(.*)")?(?: at (\d+))?$/s.exec(message) ?? [];
  const quoted = name === undefined ? "" : ` "${name.slice(0, quotedCharsMax)}"`;
  const at = index === undefined ? "" : ` at ${place(Number(index))}`;
  return `${what.charAt(0).toLowerCase()}${what.slice(1, 1 + quotedCharsMax)}${quoted}${at}`;
}

const isGroup = (value: Value | undefined): value is Variables =>
  typeof value === "object" && value !== null && !(value instanceof Verbatim) && !Array.isArray(value);

/** `.` is the value of the section itself. */
const pathOf = (name: string) => (name === "." ? [] : name.split("."));

/** Own members only, so that no name of JavaScript's is ever a variable. */
const member = (of: Value | undefined, name: string) => (isGroup(of) && Object.hasOwn(of, name) ? of[name] : undefined);

/** What lies at a path: the key of a group may hold full stops itself. */
function at(of: Value | undefined, path: readonly string[]): Value | undefined {
  const [first, ...rest] = path;
  if (first === undefined || !isGroup(of)) return first === undefined ? of : undefined;
  const whole = rest.length > 0 ? path.join(".") : first;
  return Object.hasOwn(of, whole) ? of[whole] : at(member(of, first), rest);
}

/** A name in the innermost section that knows its first part; the rest of it is looked for there and nowhere else. */
function lookUp(scopes: readonly Value[], path: readonly string[]): Value | undefined {
  const [first, ...rest] = path;
  if (first === undefined) return scopes.at(-1);
  const whole = path.join(".");
  for (let i = scopes.length - 1; i >= 0; i--) {
    const scope = scopes[i];
    if (!isGroup(scope)) continue;
    if (Object.hasOwn(scope, whole)) return scope[whole];
    if (Object.hasOwn(scope, first)) return at(scope[first], rest);
  }
  return undefined;
}

/** A value as text; empty: there is nothing to show. */
export function variableText(value: Value | undefined): string {
  if (value instanceof Verbatim) return value.text;
  return value === undefined || value === null || typeof value === "object" ? "" : String(value);
}

const isEmpty = (value: Value | undefined) => !value || (Array.isArray(value) && value.length === 0);

/** What a tag shows of a value. */
const shown = (
  value: Value | undefined,
  escape: Escaping["double"],
  { charsMax, before }: { charsMax: number; before: string },
): string => (value instanceof Verbatim ? value.text : escape(variableText(value).slice(0, charsMax), before));

/** All names that a template may show, each with its value, in their order. */
export function namedValues(variables: Variables, prefix = ""): { name: string; value: string }[] {
  return Object.entries(variables).flatMap(([key, value]) =>
    Array.isArray(value)
      ? [{ name: prefix + key, value: String(value.length) }]
      : isGroup(value)
        ? namedValues(value, `${prefix}${key}.`)
        : [{ name: prefix + key, value: variableText(value) }],
  );
}

/**
 * Renders a template. A name that nothing is known of renders empty, a group of variables too; what it holds is left out
 * when its value is absent, empty, zero or false. The result is cut to `charsMax`, wherever it is by then; no value is
 * escaped beyond that. A list is rendered once for each of its values, beside which `last` tells its end; else each part at most once.
 * @param template one that `brokenTemplate` has found whole when it was stored; longer runs of blanks are older and are cut
 * @param empty called with each name that shows nothing
 */
export function render(
  template: string,
  variables: Variables,
  escaping: Escaping,
  charsMax = renderedCharsMax,
  empty?: (name: string) => void,
): string {
  let text = "";
  let parts = 0;
  const write = (tokens: readonly Token[], scopes: readonly Value[]) => {
    for (const [kind, value, , , inner = []] of tokens) {
      if (++parts > partsMax) throw new TemplateError(`the template shows more than ${partsMax} parts`);
      // One more than may be kept shows that it is cut.
      const left = charsMax + 1 - text.length;
      if (left <= 0) return;
      if (kind === "text") {
        text += value;
        continue;
      }
      const found = lookUp(scopes, pathOf(value));
      if (kind === "name" || kind === "&") {
        if (empty && variableText(found) === "") empty(value);
        text += escaping.value
          ? escaping.value(found, text)
          : shown(found, kind === "name" ? escaping.double : escaping.triple, { charsMax: left, before: text });
      } else if (kind === "#" && Array.isArray(found)) writeEach(inner, scopes, found);
      else if (kind === "#" && found) write(inner, [...scopes, found]);
      else if (kind === "^" && isEmpty(found)) write(inner, scopes);
    }
  };
  const writeEach = (tokens: readonly Token[], scopes: readonly Value[], values: readonly Value[]) => {
    for (const [i, value] of values.entries()) {
      const last = { last: i === values.length - 1 };
      write(tokens, isGroup(value) ? [...scopes, { ...value, ...last }] : [...scopes, last, value]);
    }
  };
  write(tokensOf(template.replace(longBlanks, "$1")), [variables]);
  return cutText(text, charsMax);
}

/** A text of at most this many UTF-16 units, with an ellipsis where it was cut; never half a character. */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  return `${text.slice(0, charsMax - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** A text of at most `max` characters as people count them, the last one an ellipsis where it was cut. */
export function cutCharacters(text: string, max: number): string {
  if (text.length <= max) return text;
  // No character has more than two units.
  const characters = [...text.slice(0, 2 * max + 2)];
  return characters.length <= max ? characters.join("") : `${characters.slice(0, max - 1).join("")}…`;
}
