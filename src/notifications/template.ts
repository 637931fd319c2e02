import Mustache from "mustache";

/** The most that one template renders, characters; what is beyond is cut. */
export const renderedCharsMax = 256 * 1024;

const sectionsDeepMax = 32;
// The parser takes a time that grows with the square of a run of white space within a tag.
const blanksMax = 1000;

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

type Token = [kind: string, value: string, start: number, end: number, inner?: Token[]];

// A writer of its own: the library's keeps every template that it has ever parsed.
const writer = new Mustache.Writer();
Reflect.set(writer, "templateCache", undefined);

function place(template: string, index: number) {
  const before = template.slice(0, index).split("\n");
  return `line ${before.length}, column ${(before.at(-1) as string).length + 1}`;
}

function brokenToken(template: string, tokens: readonly Token[], depth: number): string | undefined {
  for (const [kind, value, start, , inner] of tokens) {
    if (kind === ">") return `has a partial ({{> ${value.slice(0, 64)}}}) at ${place(template, start)}: there are none`;
    if (Array.isArray(inner)) {
      if (depth === sectionsDeepMax) {
        return `has sections more than ${sectionsDeepMax} deep at ${place(template, start)}`;
      }
      const below = brokenToken(template, inner, depth + 1);
      if (below !== undefined) return below;
    }
  }
  return undefined;
}

/** Why a text is no Mustache template, with line and column; reads on after its path. Undefined when it is one. */
export function brokenTemplate(template: string): string | undefined {
  const blanks = new RegExp(`\\s{${blanksMax + 1}}`).exec(template);
  if (blanks !== null) return `has more than ${blanksMax} blanks in a row at ${place(template, blanks.index)}`;
  try {
    return brokenToken(template, writer.parse(template) as unknown as Token[], 0);
  } catch (error) {
    const [, what = "a bad tag", index = "0"] = /^(.*?)(?: at (\d+))?$/s.exec((error as Error).message) ?? [];
    return `is no Mustache template: ${brief(what)} at ${place(template, Number(index))}`;
  }
}

const brief = (what: string) => `${what.charAt(0).toLowerCase()}${what.slice(1, 120)}`;

const isGroup = (value: Value | undefined): value is Variables =>
  typeof value === "object" && value !== null && !(value instanceof Verbatim);

/** Own members only, so that no name of JavaScript's is ever a variable. */
const member = (of: Value | undefined, name: string) => (isGroup(of) && Object.hasOwn(of, name) ? of[name] : undefined);

/** A name in the innermost section that knows its first part; the rest of it is looked for there and nowhere else. */
function lookUp(scopes: readonly Value[], name: string): Value | undefined {
  if (name === ".") return scopes.at(-1);
  const [first = "", ...rest] = name.split(".");
  for (let i = scopes.length - 1; i >= 0; i--) {
    const scope = scopes[i];
    if (!isGroup(scope) || !Object.hasOwn(scope, first)) continue;
    return rest.reduce<Value | undefined>(member, scope[first]);
  }
  return undefined;
}

/** What a tag shows of a value; undefined: nothing. */
function shown(value: Value | undefined, escape: (text: string) => string, charsMax: number): string | undefined {
  if (value instanceof Verbatim) return value.text;
  if (value === undefined || value === null || typeof value === "object") return undefined;
  return escape(String(value).slice(0, charsMax));
}

/**
 * Renders a template. A name that nothing is known of renders empty, a group of variables too; what it holds is left out
 * when its value is absent, empty, zero or false. The result is cut to `charsMax`, wherever it stands by then.
 */
export function render(
  template: string,
  variables: Variables,
  escaping: Escaping,
  charsMax = renderedCharsMax,
): string {
  let text = "";
  const write = (tokens: readonly Token[], scopes: readonly Value[]) => {
    for (const [kind, value, , , inner = []] of tokens) {
      if (text.length > charsMax) return;
      if (kind === "text") {
        text += value;
        continue;
      }
      const found = lookUp(scopes, value);
      if (kind === "name") text += shown(found, escaping.double, charsMax) ?? "";
      else if (kind === "&") text += shown(found, escaping.triple, charsMax) ?? "";
      else if (kind === "#" && found) write(inner, [...scopes, found]);
      else if (kind === "^" && !found) write(inner, scopes);
    }
  };
  write(writer.parse(template) as unknown as Token[], [variables]);
  return cutText(text, charsMax);
}

/** A text of at most so many UTF-16 units, with an ellipsis where it was cut; never half a character. */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  return `${text.slice(0, charsMax - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
