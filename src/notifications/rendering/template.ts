import { parsed, TemplateError, type Token } from "./mustache.ts";

/** The most that one template renders, characters; what is beyond is cut. */
export const renderedCharsMax = 256 * 1024;

/** What a template reads: texts by name, within groups by name. Nothing of it is ever called. */
export interface Variables {
  readonly [name: string]: Value | undefined;
}

export type Value = string | number | boolean | null | Verbatim | Variables;

/** A text that is markup already: it comes into the result as it is. */
export class Verbatim {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** How values come into a text: those of `{{a}}`, and those of `{{{a}}}` and `{{&a}}`. */
export interface Escaping {
  readonly double: (text: string) => string;
  readonly triple: (text: string) => string;
}

/** Why a text is no Mustache template, with line and column; reads on after its path. Undefined when it is one. */
export function brokenTemplate(template: string): string | undefined {
  try {
    parsed(template);
    return undefined;
  } catch (error) {
    if (error instanceof TemplateError) return error.message;
    throw error;
  }
}

const isGroup = (value: Value | undefined): value is Variables =>
  typeof value === "object" && value !== null && !(value instanceof Verbatim);

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
export function textOf(value: Value | undefined): string {
  if (value instanceof Verbatim) return value.text;
  return value === undefined || value === null || typeof value === "object" ? "" : String(value);
}

/** What a tag shows of a value. */
const shown = (value: Value | undefined, escape: (text: string) => string, charsMax: number): string =>
  value instanceof Verbatim ? value.text : escape(textOf(value).slice(0, charsMax));

/** All names that a template may show, each with its value, in their order. */
export function namedValues(variables: Variables, prefix = ""): { name: string; value: string }[] {
  return Object.entries(variables).flatMap(([key, value]) =>
    isGroup(value) ? namedValues(value, `${prefix}${key}.`) : [{ name: prefix + key, value: textOf(value) }],
  );
}

/**
 * Renders a template. A name that nothing is known of renders empty, a group of variables too; what it holds is left out
 * when its value is absent, empty, zero or false. The result is cut to `charsMax`, wherever it is by then; no value is
 * escaped beyond that. Each part of the template is rendered at most once. @throws TemplateError
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
  const write = (tokens: readonly Token[], scopes: readonly Value[]) => {
    for (const token of tokens) {
      // One more than may be kept shows that it is cut.
      const left = charsMax + 1 - text.length;
      if (left <= 0) return;
      if (token.kind === "text") {
        text += token.text;
        continue;
      }
      const found = lookUp(scopes, token.path);
      if (empty && (token.kind === "double" || token.kind === "triple") && textOf(found) === "")
        empty(token.path.join("."));
      if (token.kind === "double") text += shown(found, escaping.double, left);
      else if (token.kind === "triple") text += shown(found, escaping.triple, left);
      else if (token.kind === "section" && found) write(token.inner, [...scopes, found]);
      else if (token.kind === "inverted" && !found) write(token.inner, scopes);
    }
  };
  write(parsed(template), [variables]);
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
