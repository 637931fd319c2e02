import Mustache from "mustache";
import type { Pace } from "../../event-loop.ts";

// Templates come from users: the library would keep each one for good.
Mustache.templateCache = undefined;

/** A part of a template as the library's parser gives it; a section has its tokens at the end. */
type Token = readonly [kind: string, value: string, start: number, end: number, inner?: readonly Token[]];

const parsed = (template: string) => Mustache.parse(template) as unknown as readonly Token[];

/** A stored template that cannot be rendered: the version that took it had other rules. */
export class TemplateError extends Error {}

/** A part of a template that is ready to be rendered. */
interface Part {
  readonly kind: string;
  readonly value: string;
  /** Of a tag: the parts of its name; none for `.`, the value of the section itself. */
  readonly path: readonly string[];
  readonly inner: Template;
}

/** A template, parsed. */
export type Template = readonly Part[];

const toTemplate = (tokens: readonly Token[]): Template =>
  tokens.map(([kind, value, , , inner = []]) => ({
    kind,
    value,
    path: kind === "text" || value === "." ? [] : value.split("."),
    inner: toTemplate(inner),
  }));

/**
 * Parses a stored template. Runs of blanks that are no longer taken are cut.
 * @throws TemplateError when it is none: another parser took it
 */
export function parseTemplate(template: string, steps: RenderSteps): Template {
  take(steps, stepsPerCharacter * template.length);
  try {
    return toTemplate(parsed(template.replace(longBlanks, "$1")));
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

/**
 * The steps that the templates of a destination take together, and the message of a rule by itself. A step takes 20 to 170 ns: asking
 * one section for a name. What else costs time counts as so many steps.
 */
export const renderStepsMax = 600_000;
const stepsPerCharacter = 4;
const stepsPerTag = 8;
const stepsPerValue = 8;

/** The steps that are left of `renderStepsMax`. */
export interface RenderSteps {
  left: number;
}

/** Steps for all templates of a destination, or for a rule's message. */
export const newSteps = (): RenderSteps => ({ left: renderStepsMax });

/** @throws TemplateError when there are not as many left */
function take(steps: RenderSteps, count: number) {
  steps.left -= count;
  if (steps.left < 0) throw new TemplateError(`the templates take more than ${renderStepsMax} steps`);
}

/** The variables that are lists; those of a notification have at most `listedMax` values. */
export const listNames = ["alerts", "firing", "resolved", "lines", "members"] as const;
const listedMax = 101;

const stepsOfTag = ({ path }: Part, scopes: number) => stepsPerTag + path.length + scopes;

/** Counts the steps that rendering takes at most, whatever the values are. */
function mostSteps(template: Template, scopes = 1): number {
  let steps = 0;
  for (const part of template) {
    const { kind, value, inner } = part;
    steps += kind === "text" ? 1 : stepsOfTag(part, scopes);
    const isList = kind === "#" && listNames.some((name) => name === value);
    if (isList) steps += listedMax * (stepsPerValue + mostSteps(inner, scopes + 2));
    else steps += mostSteps(inner, kind === "#" ? scopes + 1 : scopes);
  }
  return steps;
}

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

/** How values come into a text: those of `{{a}}`, and those of `{{{a}}}` and `{{&a}}`. */
export interface Escaping {
  readonly double: (text: string) => string;
  readonly triple: (text: string) => string;
  /** How any value comes in, whatever braces it has; absent: as a text. */
  readonly value?: (value: Value | undefined) => string;
  /** Takes each piece of the result, in order, where values come in by what stands before them. */
  readonly wrote?: (piece: string) => void;
}

/** A run of blanks that is too long: the parser's time grows with its square. */
const longBlanks = new RegExp(`(?<!\\s)(\\s{${blanksMax}})\\s+`, "g");

/**
 * Returns why a text is no template that may be stored, with line and column, to read on after its path; undefined when it is one.
 * @param stored what stands there already: sent back unchanged, it may hold tags of Go's templates
 */
export function brokenTemplate(template: string, stored?: string): string | undefined {
  const { broken, steps } = checkedTemplate(template);
  return broken ?? tooManyRenderSteps(steps) ?? (template === stored ? undefined : goTag(template));
}

const goWords = new Set(["if", "range", "end", "with", "else", "define", "template"]);

/** Returns where a template has a tag as Alertmanager's templates have, which would render as nothing; undefined: it has none. */
export function goTag(template: string): string | undefined {
  const tags = (tokens: readonly Token[]): Token[] =>
    tokens.flatMap((token) => (token[0] === "text" ? [] : [token, ...tags(token[4] ?? [])]));
  const found = tags(parsed(template)).find(([, value]) => {
    const tag = value.replace(/^-\s+/, "");
    return goWords.has(tag.split(/\s/, 1)[0] ?? "") || /^\.\p{L}|\s\||\|\s/u.test(tag);
  });
  if (found === undefined) return undefined;
  const [, value, start] = found;
  return `has a tag of Go's templates ({{ ${value.slice(0, quotedCharsMax)} }}) at ${placeIn(template, start)}; templates are Mustache: docs/coming-from-alertmanager.md#templates translates them`;
}

function placeIn(template: string, index: number): string {
  const before = template.slice(0, index).split("\n");
  return `line ${before.length}, column ${(before.at(-1) as string).length + 1}`;
}

/** Returns why a text is no Mustache template, as `brokenTemplate` does, or how many steps it takes at most. */
export function checkedTemplate(template: string): { broken?: string; steps: number } {
  const place = (index: number) => placeIn(template, index);
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
  const no = (broken: string) => ({ broken, steps: 0 });
  const blanks = template.search(longBlanks);
  if (blanks >= 0) return no(`has more than ${blanksMax} blanks in a row at ${place(blanks)}`);
  if (template.length > otherDelimitersCharsMax && otherDelimiters.test(template))
    return no(`changes its delimiters, and has more than ${otherDelimitersCharsMax} characters`);
  try {
    const tokens = parsed(template);
    const broken = firstBroken(tokens, 0);
    return broken === undefined
      ? { steps: stepsPerCharacter * template.length + mostSteps(toTemplate(tokens)) }
      : no(broken);
  } catch (error) {
    return no(`is no Mustache template: ${syntaxError((error as Error).message, place)}`);
  }
}

/** Says that templates take too many steps, to read on after their path; undefined: they do not. */
export const tooManyRenderSteps = (steps: number): string | undefined =>
  steps > renderStepsMax
    ? `takes up to ${steps} steps to render; ${renderStepsMax} are allowed: nest fewer lists, or use fewer tags in them`
    : undefined;

/** Rewrites an error of the parser, such as `Unclosed section "event" at 17`: offsets become places, long names are cut. */
function syntaxError(message: string, place: (index: number) => string): string {
  const [, what = message, name, index] = /^(.*?)(?: "(.*)")?(?: at (\d+))?$/s.exec(message) ?? [];
  const quoted = name === undefined ? "" : ` "${name.slice(0, quotedCharsMax)}"`;
  const at = index === undefined ? "" : ` at ${place(Number(index))}`;
  return `${what.charAt(0).toLowerCase()}${what.slice(1, 1 + quotedCharsMax)}${quoted}${at}`;
}

const isGroup = (value: Value | undefined): value is Variables =>
  typeof value === "object" && value !== null && !(value instanceof Verbatim) && !Array.isArray(value);

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
function lookUp(scopes: readonly Value[], { value: whole, path }: Part): Value | undefined {
  const [first] = path;
  if (first === undefined) return scopes.at(-1);
  for (let i = scopes.length - 1; i >= 0; i--) {
    const scope = scopes[i];
    if (!isGroup(scope)) continue;
    if (Object.hasOwn(scope, whole)) return scope[whole];
    if (Object.hasOwn(scope, first)) return at(scope[first], path.slice(1));
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
const shown = (value: Value | undefined, escape: Escaping["double"], charsMax: number): string =>
  value instanceof Verbatim ? value.text : escape(variableText(value).slice(0, charsMax));

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

/** Parts that are being rendered, the next of them, and the values that they can see, the innermost last. */
interface Section {
  readonly parts: Template;
  next: number;
  scopes: readonly Value[];
  /** The scopes of the further values of a list. */
  readonly further?: Iterator<readonly Value[]>;
}

function* scopesOfEach(scopes: readonly Value[], values: readonly Value[]): Generator<readonly Value[]> {
  for (const [i, value] of values.entries()) {
    const last = { last: i === values.length - 1 };
    yield isGroup(value) ? [...scopes, { ...value, ...last }] : [...scopes, last, value];
  }
}

/** Opens a section for a value: once, for each value of a list, or not at all. */
function opened({ kind, inner: parts }: Part, scopes: readonly Value[], found: Value | undefined): Section | undefined {
  if (kind === "^") return isEmpty(found) ? { parts, next: 0, scopes } : undefined;
  if (kind !== "#" || !found) return undefined;
  // A list begins behind its parts, where it goes on to its first value.
  if (Array.isArray(found)) return { parts, next: parts.length, scopes, further: scopesOfEach(scopes, found) };
  return { parts, next: 0, scopes: [...scopes, found] };
}

/** Tells whether a section goes on to a further value of its list, and does. */
function goesOn(section: Section): boolean {
  const further = section.further?.next();
  if (further === undefined || further.done) return false;
  section.scopes = further.value;
  section.next = 0;
  return true;
}

/** How a template is rendered. */
export interface Rendering {
  readonly steps: RenderSteps;
  readonly pace: Pace;
  /** Absent: `renderedCharsMax`. */
  readonly charsMax?: number | undefined;
  /** Called with each name that shows nothing. */
  readonly empty?: (name: string) => void;
}

/**
 * Renders a template, in slices. A name that nothing is known of renders empty, a group of variables too; what it holds is left
 * out when its value is absent, empty, zero or false. The result is cut to `charsMax`, wherever it is by then; no value is
 * escaped beyond that. A list is rendered once for each of its values, beside which `last` tells its end; else each part at most once.
 * @throws TemplateError when it takes more steps than are left
 */
export async function render(
  template: Template,
  variables: Variables,
  escaping: Escaping,
  { steps, pace, charsMax = renderedCharsMax, empty }: Rendering,
): Promise<string> {
  let text = "";
  const write = (piece: string) => {
    text += piece;
    escaping.wrote?.(piece);
  };
  const open: Section[] = [{ parts: template, next: 0, scopes: [variables] }];
  // One more than may be kept shows that it is cut.
  for (let section = open.at(-1); section !== undefined && text.length <= charsMax; section = open.at(-1)) {
    const turn = pace();
    if (turn !== undefined) await turn;
    const part = section.parts[section.next++];
    if (part === undefined) {
      if (goesOn(section)) take(steps, stepsPerValue);
      else open.pop();
      continue;
    }
    const { kind, value } = part;
    take(steps, kind === "text" ? 1 : stepsOfTag(part, section.scopes.length));
    if (kind === "text") {
      write(value);
      continue;
    }
    const found = lookUp(section.scopes, part);
    if (kind === "name" || kind === "&") {
      if (empty && variableText(found) === "") empty(value);
      const escape = kind === "name" ? escaping.double : escaping.triple;
      write(escaping.value?.(found) ?? shown(found, escape, charsMax + 1 - text.length));
    } else {
      const inner = opened(part, section.scopes, found);
      if (inner !== undefined) open.push(inner);
    }
  }
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
