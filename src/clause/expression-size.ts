import { RE2JS, RE2JSSyntaxException } from "re2js";

/** What an expression takes once it is compiled: upper bounds, known without compiling it. */
export interface ExpressionSize {
  /** No fewer than re2js's `programSize()`. */
  readonly instructions: number;
  /** The same, with classes of many ranges counted twice: it takes a binary search to compare a character with one. */
  readonly weight: number;
  /** About how many bytes its program takes; what takes long to read, at 0.1 ms for 30 KB, counts too. */
  readonly bytes: number;
  readonly matchesEmpty: boolean;
}

/** Where an expression is wrong, and why; `at` counts its code points from 0. */
export interface PatternMistake {
  readonly at: number;
  readonly reason: string;
}

/** A part of an expression with its repetitions written out. */
interface Part {
  instructions: number;
  wide: number;
  ranges: number;
  /** Whether it may take no character as the compiler sees it: any assertion may. */
  nullable: boolean;
  /** Whether it matches the empty text. */
  empty: boolean;
  /** How often its inner parts are repeated, one repetition within the other. */
  times: number;
}

const instructionBytes = 200;
/** Of a class at each instruction: a one-pass program holds copies of it. */
const rangeBytes = 24;
const propertyRanges = 700; // \pL has 684, more than any other
const propertyBytes = 30_000;
/** Case is folded one code point at a time, which takes 45 ns. */
const foldedPointBytes = 6;
const foldedMin = 0x41;
const foldedMax = 0x1e943;
/** Up to these many ranges are compared one by one. */
const narrowRanges = 4;
const timesMax = 1000;

const nothing: Part = { instructions: 1, wide: 0, ranges: 0, nullable: true, empty: true, times: 1 };
const character: Part = { instructions: 1, wide: 0, ranges: 1, nullable: false, empty: false, times: 1 };
const boundary: Part = { ...nothing, empty: false };

function classOf(ranges: number): Part {
  return { ...character, ranges, wide: ranges > narrowRanges ? 1 : 0 };
}

function sequence(a: Part | undefined, b: Part): Part {
  if (a === undefined) return b;
  return {
    instructions: a.instructions + b.instructions,
    wide: a.wide + b.wide,
    ranges: a.ranges + b.ranges,
    nullable: a.nullable && b.nullable,
    empty: a.empty && b.empty,
    times: Math.max(a.times, b.times),
  };
}

function choice(a: Part | undefined, b: Part): Part {
  if (a === undefined) return b;
  const both = sequence(a, b);
  return {
    ...both,
    instructions: both.instructions + 1,
    nullable: a.nullable || b.nullable,
    empty: a.empty || b.empty,
  };
}

/** @param max Infinity: without a bound */
function repeated(part: Part, min: number, max: number): Part {
  if (max === 0) return nothing;
  const copies = Number.isFinite(max) ? max : Math.max(1, min);
  const optional = Number.isFinite(max) ? max - min : min === 0 && part.nullable ? 2 : 1;
  return {
    instructions: part.instructions * copies + optional,
    wide: part.wide * copies,
    ranges: part.ranges * copies,
    nullable: min === 0 || part.nullable,
    empty: min === 0 || part.empty,
    times: part.times * copies,
  };
}

/** A group that is open, or the whole expression. */
interface Group {
  readonly at: number;
  readonly captures: boolean;
  /** Whether case is folded where it begins. */
  readonly folds: boolean;
  /** The alternatives before this one. */
  alternatives: Part | undefined;
  /** This one, without its last part, to which a repetition belongs. */
  read: Part | undefined;
  last: Part | undefined;
}

const newGroup = (at: number, captures: boolean, folds: boolean): Group => ({
  at,
  captures,
  folds,
  alternatives: undefined,
  read: undefined,
  last: undefined,
});

const assertions: Readonly<Record<string, Part>> = { A: nothing, z: nothing, B: nothing, b: boundary };
const controls = "afnrtv";
const posixName = /\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]/y;
const posixForm = /\[:[\s\S]*?:\]/y;
const perlClass = /\\[dDsSwW]/y;
const repetition = /(?:[*+?]|\{(0|[1-9]\d*)(?:(,)(0|[1-9]\d*)?)?\})/y;
const groupName = /\(\?P?<([A-Za-z0-9_]+)>/y;
const groupFlags = /\(\?([imsU]*)(?:-([imsU]+))?([:)])/y;
/** What RE2 reads before it finds that flags are none. */
const flagsRead = /\(\?[imsU]*(?:-[imsU]*)?.?/suy;
const hexEscape = /\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))/y;
const hexRead = /\\x(?:\{[0-9A-Fa-f]*.?|.{0,2})/suy;
const octalEscape = /\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})/y;
const property = /\\[pP](?:\{(\^?)([^}]*)\}|([^{]))/uy;

/** Names of classes such as `Greek` that were found to be known. */
const knownProperties = new Set<string>();

function isProperty(name: string): boolean {
  if (knownProperties.has(name)) return true;
  try {
    RE2JS.compile(`\\p{${name}}`);
  } catch (error) {
    if (error instanceof RE2JSSyntaxException) return false;
    throw error;
  }
  knownProperties.add(name);
  return true;
}

/** A mistake while it is thrown; `at` counts UTF-16 units. */
class Wrong extends Error {
  readonly at: number;
  constructor(at: number, reason: string) {
    super(reason);
    this.at = at;
  }
}

/** Measures an expression of RE2's syntax, or says what is wrong with it in RE2's words. Takes time that is linear in the text. */
export function expressionSize(expression: string): ExpressionSize | PatternMistake {
  try {
    return measured(expression);
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    return { at: Array.from(expression.slice(0, error.at)).length, reason: error.message };
  }
}

function measured(text: string): ExpressionSize {
  let folds = false;
  let readBytes = 0;
  /** The repetition that was read last; undefined: something else was. */
  let before: Repetition | undefined;
  let group = newGroup(-1, false, false);
  const around: Group[] = [];
  const names = new Set<string>();
  for (let at = 0; at < text.length; ) {
    const token = tokenAt(text, at, folds);
    if (token.kind === "repetition") {
      group.last = repeatedBy(group.last, token, before);
      before = token;
    } else before = undefined;
    switch (token.kind) {
      case "parts":
        for (const part of token.parts) add(group, part);
        readBytes += token.readBytes;
        break;
      case "open":
        if (token.name !== undefined && names.has(token.name))
          throw new Wrong(at, `duplicate capture group name: ${token.name}`);
        if (token.name !== undefined) names.add(token.name);
        around.push(group);
        group = newGroup(at, token.captures, folds);
        ({ folds } = token);
        break;
      case "flags":
        ({ folds } = token);
        break;
      case "or":
        group.alternatives = alternativeOf(group);
        group.read = undefined;
        group.last = undefined;
        break;
      case "close": {
        const outer = around.pop();
        if (outer === undefined) throw new Wrong(at, "unexpected )");
        const inner = alternativeOf(group);
        add(outer, group.captures ? { ...inner, instructions: inner.instructions + 2 } : inner);
        ({ folds } = group);
        group = outer;
      }
    }
    at = token.end;
  }
  if (around.length > 0) throw new Wrong(group.at, "missing closing )");
  return sizeOf(alternativeOf(group), readBytes);
}

function sizeOf({ instructions, wide, ranges, empty }: Part, readBytes: number): ExpressionSize {
  const ends = 2; // one that fails and one that matches
  return {
    instructions: instructions + ends,
    weight: instructions + ends + wide,
    bytes: (instructions + ends) * instructionBytes + ranges * rangeBytes + readBytes,
    matchesEmpty: empty,
  };
}

function add(group: Group, part: Part): void {
  if (group.last !== undefined) group.read = sequence(group.read, group.last);
  group.last = part;
}

const alternativeOf = ({ alternatives, read, last }: Group): Part =>
  choice(alternatives, sequence(read, last ?? nothing));

/** Multiplies a part out. @param before the repetition that stands right before this one */
function repeatedBy(part: Part | undefined, token: Repetition, before: Repetition | undefined): Part {
  const { at, written, min, max, isCounted } = token;
  if (before !== undefined)
    throw new Wrong(before.at, `invalid nested repetition operator: ${before.written}${written}`);
  if (part === undefined) throw new Wrong(at, `missing argument to repetition operator: ${written}`);
  const whole = repeated(part, min, max);
  if (!isCounted) return { ...whole, times: part.times };
  if (max === 0) return { ...whole, times: 1 };
  const times = part.times * Math.max(1, Number.isFinite(max) ? max : min);
  if (times > timesMax) throw new Wrong(at, `invalid repeat count: ${written}`);
  return { ...whole, times };
}

interface Repetition {
  readonly kind: "repetition";
  readonly at: number;
  readonly end: number;
  readonly written: string;
  readonly min: number;
  readonly max: number;
  /** Whether it has braces. */
  readonly isCounted: boolean;
}

/** What stands at one place of an expression, up to `end`. */
type Token = { readonly end: number } & (
  | Repetition
  | { readonly kind: "parts"; readonly parts: readonly Part[]; readonly readBytes: number }
  | { readonly kind: "open"; readonly captures: boolean; readonly name?: string; readonly folds: boolean }
  | { readonly kind: "flags"; readonly folds: boolean }
  | { readonly kind: "or" | "close" }
);

/** @param folds whether case is folded here */
function tokenAt(text: string, at: number, folds: boolean): Token {
  switch (text[at]) {
    case "(":
      return groupAt(text, at, folds);
    case ")":
      return { kind: "close", end: at + 1 };
    case "|":
      return { kind: "or", end: at + 1 };
    case "[":
      return classToken(bracketsAt(text, at, folds));
    case "\\":
      return escapeAt(text, at, folds);
    case "^":
    case "$":
      return partToken(nothing, at + 1);
  }
  return repetitionAt(text, at) ?? partToken(character, pointAt(text, at).end);
}

const partToken = (part: Part, end: number): Token => ({ kind: "parts", parts: [part], readBytes: 0, end });
const classToken = ({ ranges, readBytes, end }: Ranges): Token => ({
  kind: "parts",
  parts: [classOf(ranges)],
  readBytes,
  end,
});

function repetitionAt(text: string, at: number): Repetition | undefined {
  const found = formAt(repetition, text, at);
  if (found === null) return undefined;
  const [sign, low, comma, high] = found;
  const end = at + sign.length + (text[at + sign.length] === "?" ? 1 : 0);
  const whole = { kind: "repetition" as const, at, end, written: text.slice(at, end) };
  if (low === undefined)
    return { ...whole, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Infinity, isCounted: false };
  const min = Number(low);
  const max = high !== undefined ? Number(high) : comma ? Infinity : min;
  if (min > timesMax || (Number.isFinite(max) && (max > timesMax || min > max)))
    throw new Wrong(at, `invalid repeat count: ${sign}`);
  return { ...whole, min, max, isCounted: true };
}

function groupAt(text: string, at: number, folds: boolean): Token {
  if (text[at + 1] !== "?") return { kind: "open", captures: true, folds, end: at + 1 };
  if (/^\(\?P?</.test(text.slice(at, at + 4))) {
    const named = formAt(groupName, text, at);
    if (named) return { kind: "open", captures: true, name: named[1] ?? "", folds, end: at + named[0].length };
    const end = text.indexOf(">", at);
    throw new Wrong(at, end < 0 ? "invalid named capture" : `invalid named capture: ${text.slice(at, end + 1)}`);
  }
  const flags = formAt(groupFlags, text, at);
  if (flags === null)
    throw new Wrong(at, `invalid or unsupported Perl syntax: ${formAt(flagsRead, text, at)?.[0] ?? text.slice(at)}`);
  const [whole, on = "", off = "", close] = flags;
  const inner = { folds: (folds || on.includes("i")) && !off.includes("i"), end: at + whole.length };
  return close === ":" ? { kind: "open", captures: false, ...inner } : { kind: "flags", ...inner };
}

function escapeAt(text: string, at: number, folds: boolean): Token {
  const letter = text[at + 1] ?? "";
  const assertion = Object.hasOwn(assertions, letter) ? assertions[letter] : undefined;
  if (assertion !== undefined) return partToken(assertion, at + 2);
  if (letter === "Q") {
    const end = text.indexOf("\\E", at + 2);
    // It would take the end of the group with it, in which Alertmanager puts an expression.
    if (end < 0) throw new Wrong(at, "missing closing )");
    return { kind: "parts", parts: Array.from(text.slice(at + 2, end), () => character), readBytes: 0, end: end + 2 };
  }
  const known = namedClassAt(text, at, folds);
  return known === undefined ? partToken(character, escapedAt(text, at).end) : classToken(known);
}

/** A code point, and where it ends. */
interface Point {
  readonly code: number;
  readonly end: number;
}

function pointAt(text: string, at: number): Point {
  const code = text.codePointAt(at) as number;
  return { code, end: at + (code > 0xffff ? 2 : 1) };
}

/** The code point that an escape stands for. */
function escapedAt(text: string, at: number): Point {
  if (at + 1 >= text.length) throw new Wrong(at, "trailing backslash at end of expression");
  const hex = formAt(hexEscape, text, at);
  const code = hex ? Number.parseInt(hex[1] ?? hex[2] ?? "", 16) : Infinity;
  if (hex && code <= 0x10ffff) return { code, end: at + hex[0].length };
  const octal = formAt(octalEscape, text, at);
  if (octal) return { code: Number.parseInt(octal[0].slice(1), 8), end: at + octal[0].length };
  const sign = pointAt(text, at + 1);
  const written = String.fromCodePoint(sign.code);
  if (sign.code < 128 && (controls.includes(written) || /^[^0-9A-Za-z]$/.test(written))) return sign;
  const wrong = written === "x" ? (formAt(hexRead, text, at)?.[0] ?? written) : `\\${written}`;
  throw new Wrong(at, `invalid escape sequence: ${wrong}`);
}

/** How many ranges a class has, or a part of one, and where it ends. */
interface Ranges {
  readonly ranges: number;
  readonly readBytes: number;
  readonly end: number;
}

/** Reads `\d`, `\p…` and the like; undefined: it is another escape. */
function namedClassAt(text: string, at: number, folds: boolean): Ranges | undefined {
  if (formAt(perlClass, text, at)) return { ranges: narrowRanges, readBytes: 0, end: at + 2 };
  if (!/^\\[pP]/.test(text.slice(at, at + 2))) return undefined;
  const found = formAt(property, text, at);
  const name = found?.[2] ?? found?.[3];
  if (found === null || name === undefined || !isProperty(name.replace(/^\^/, "")))
    throw new Wrong(at, `invalid character class range: ${found?.[0] ?? text.slice(at)}`);
  const readBytes = folds ? 2 * propertyBytes : propertyBytes;
  return { ranges: propertyRanges, readBytes, end: at + found[0].length };
}

function bracketsAt(text: string, at: number, folds: boolean): Ranges {
  let ranges = 1;
  let readBytes = 0;
  const from = text[at + 1] === "^" ? at + 2 : at + 1;
  let end = from;
  while (end === from || text[end] !== "]") {
    const inner = posixAt(text, end) ?? namedClassAt(text, end, folds) ?? rangeAt(text, end, at, folds);
    ranges += inner.ranges;
    readBytes += inner.readBytes;
    ({ end } = inner);
  }
  return { ranges, readBytes, end: end + 1 };
}

function posixAt(text: string, at: number): Ranges | undefined {
  const found = formAt(posixForm, text, at);
  if (found === null) return undefined;
  if (!formAt(posixName, text, at)) throw new Wrong(at, `invalid character class range: ${found[0]}`);
  return { ranges: narrowRanges, readBytes: 0, end: at + found[0].length };
}

/** @param bracketAt where the brackets begin in which the range stands */
function rangeAt(text: string, at: number, bracketAt: number, folds: boolean): Ranges {
  const boundAt = (place: number): Point => {
    if (place >= text.length) throw new Wrong(bracketAt, "missing closing ]");
    return text[place] === "\\" ? escapedAt(text, place) : pointAt(text, place);
  };
  const low = boundAt(at);
  const isRange = text[low.end] === "-" && text[low.end + 1] !== "]";
  const high = isRange ? boundAt(low.end + 1) : low;
  const { end } = high;
  if (high.code < low.code) throw new Wrong(at, `invalid character class range: ${text.slice(at, end)}`);
  if (!folds) return { ranges: 1, readBytes: 0, end };
  const folded = Math.max(0, Math.min(high.code, foldedMax) - Math.max(low.code, foldedMin) + 1);
  return { ranges: 1 + Math.min(folded * 3, propertyRanges), readBytes: folded * foldedPointBytes, end };
}

function formAt(form: RegExp, text: string, at: number): RegExpExecArray | null {
  form.lastIndex = at;
  return form.exec(text);
}
