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

function measured(expression: string): ExpressionSize {
  let at = 0;
  let folds = false;
  let repeatedAt = -1;
  let readBytes = 0;
  const names = new Set<string>();
  let group = newGroup(-1, false, false);
  const around: Group[] = [];

  const found = (form: RegExp): RegExpExecArray | null => {
    form.lastIndex = at;
    return form.exec(expression);
  };
  const add = (part: Part) => {
    if (group.last !== undefined) group.read = sequence(group.read, group.last);
    group.last = part;
  };
  const alternative = () => choice(group.alternatives, sequence(group.read, group.last ?? nothing));
  const point = () => {
    const code = expression.codePointAt(at) as number;
    at += code > 0xffff ? 2 : 1;
    return code;
  };

  /** The code point that an escape stands for. */
  function escaped(): number {
    const from = at;
    if (from + 1 >= expression.length) throw new Wrong(from, "trailing backslash at end of expression");
    const hex = found(hexEscape);
    const code = hex && Number.parseInt(hex[1] ?? hex[2] ?? "", 16);
    if (hex && code !== null && code <= 0x10ffff) {
      at += hex[0].length;
      return code;
    }
    const octal = found(octalEscape);
    if (octal) {
      at += octal[0].length;
      return Number.parseInt(octal[0].slice(1), 8);
    }
    at += 1;
    const sign = point();
    const text = String.fromCodePoint(sign);
    if (controls.includes(text) || /^[^0-9A-Za-z]$/.test(text)) if (sign < 128) return sign;
    at = from;
    const wrong = text === "x" ? (found(hexRead)?.[0] ?? text) : `\\${text}`;
    throw new Wrong(from, `invalid escape sequence: ${wrong}`);
  }

  /** How many ranges `\p…` has; undefined: it is another escape. */
  function propertyAt(): number | undefined {
    if (!/^\\[pP]/.test(expression.slice(at, at + 2))) return undefined;
    const there = found(property);
    const name = there && (there[2] ?? there[3] ?? "");
    if (there === null || name === null || !isProperty(name.replace(/^\^/, "")))
      throw new Wrong(at, `invalid character class range: ${there?.[0] ?? expression.slice(at)}`);
    at += there[0].length;
    readBytes += folds ? 2 * propertyBytes : propertyBytes;
    return propertyRanges;
  }

  /** How many ranges the brackets have that begin here. */
  function brackets(): number {
    const from = at;
    at += expression[at + 1] === "^" ? 2 : 1;
    let ranges = 1;
    for (let first = true; first || expression[at] !== "]"; first = false) {
      const posix = found(posixForm);
      if (posix) {
        if (!found(posixName)) throw new Wrong(at, `invalid character class range: ${posix[0]}`);
        at += posix[0].length;
        ranges += narrowRanges;
        continue;
      }
      const ofProperty = propertyAt();
      if (ofProperty !== undefined) ranges += ofProperty;
      else if (found(perlClass)) {
        at += 2;
        ranges += narrowRanges;
      } else ranges += range(from);
    }
    at += 1;
    return ranges;
  }

  function range(bracketAt: number): number {
    const from = at;
    const end = () => {
      if (at >= expression.length) throw new Wrong(bracketAt, "missing closing ]");
      return expression[at] === "\\" ? escaped() : point();
    };
    const low = end();
    let high = low;
    if (expression[at] === "-" && expression[at + 1] !== "]") {
      at += 1;
      high = end();
      if (high < low) throw new Wrong(from, `invalid character class range: ${expression.slice(from, at)}`);
    }
    if (!folds) return 1;
    const folded = Math.max(0, Math.min(high, foldedMax) - Math.max(low, foldedMin) + 1);
    readBytes += folded * foldedPointBytes;
    return 1 + Math.min(folded * 3, propertyRanges);
  }

  function openGroup() {
    const from = at;
    if (expression[at + 1] !== "?") {
      around.push(group);
      group = newGroup(from, true, folds);
      at += 1;
      return;
    }
    const named = found(groupName);
    if (named || /^\(\?P?</.test(expression.slice(at, at + 4))) {
      const end = expression.indexOf(">", at);
      if (named === null)
        throw new Wrong(
          from,
          end < 0 ? "invalid named capture" : `invalid named capture: ${expression.slice(at, end + 1)}`,
        );
      const [whole, name = ""] = named;
      if (names.has(name)) throw new Wrong(from, `duplicate capture group name: ${name}`);
      names.add(name);
      around.push(group);
      group = newGroup(from, true, folds);
      at += whole.length;
      return;
    }
    const flags = found(groupFlags);
    if (flags === null)
      throw new Wrong(from, `invalid or unsupported Perl syntax: ${found(flagsRead)?.[0] ?? expression.slice(at)}`);
    const [whole, on = "", off = "", end] = flags;
    if (end === ":") {
      around.push(group);
      group = newGroup(from, false, folds);
    }
    folds = (folds || on.includes("i")) && !off.includes("i");
    at += whole.length;
  }

  function closeGroup() {
    const outer = around.pop();
    if (outer === undefined) throw new Wrong(at, "unexpected )");
    const inner = alternative();
    const whole = group.captures ? { ...inner, instructions: inner.instructions + 2 } : inner;
    folds = group.folds;
    group = outer;
    add(whole);
    at += 1;
  }

  function repeat([text, low, comma, high]: RegExpExecArray) {
    const from = at;
    const min = low === undefined ? (text === "+" ? 1 : 0) : Number(low);
    const max =
      low === undefined ? (text === "?" ? 1 : Infinity) : high === undefined ? (comma ? Infinity : min) : Number(high);
    if (min > timesMax || (Number.isFinite(max) && (max > timesMax || min > max)))
      throw new Wrong(from, `invalid repeat count: ${text}`);
    at += text.length;
    if (expression[at] === "?") at += 1;
    if (repeatedAt >= 0)
      throw new Wrong(repeatedAt, `invalid nested repetition operator: ${expression.slice(repeatedAt, at)}`);
    if (group.last === undefined)
      throw new Wrong(from, `missing argument to repetition operator: ${expression.slice(from, at)}`);
    const times = low === undefined ? group.last.times : Math.max(1, Number.isFinite(max) ? max : min);
    if (low !== undefined && max !== 0 && times * group.last.times > timesMax)
      throw new Wrong(from, `invalid repeat count: ${expression.slice(from, at)}`);
    const whole = repeated(group.last, min, max);
    group.last = { ...whole, times: low === undefined ? group.last.times : max === 0 ? 1 : times * group.last.times };
    repeatedAt = from;
  }

  function escapeOrClass() {
    const letter = expression[at + 1] ?? "";
    const assertion = Object.hasOwn(assertions, letter) ? assertions[letter] : undefined;
    if (assertion !== undefined) {
      add(assertion);
      at += 2;
    } else if (letter === "Q") {
      const end = expression.indexOf("\\E", at + 2);
      // It would take the end of the group with it, in which Alertmanager puts an expression.
      if (end < 0) throw new Wrong(at, "missing closing )");
      for (at += 2; at < end; point()) add(character);
      at = end + 2;
    } else {
      const ranges = propertyAt();
      if (ranges !== undefined) add(classOf(ranges));
      else if (found(perlClass)) {
        add(classOf(narrowRanges));
        at += 2;
      } else {
        escaped();
        add(character);
      }
    }
  }

  while (at < expression.length) {
    const before = repeatedAt;
    const c = expression[at];
    const times = c === "{" || c === "*" || c === "+" || c === "?" ? found(repetition) : null;
    if (times) {
      repeat(times);
      continue;
    }
    if (c === "(") openGroup();
    else if (c === ")") closeGroup();
    else if (c === "|") {
      group.alternatives = alternative();
      group.read = undefined;
      group.last = undefined;
      at += 1;
    } else if (c === "[") add(classOf(brackets()));
    else if (c === "\\") escapeOrClass();
    else if (c === "^" || c === "$") {
      add(nothing);
      at += 1;
    } else {
      point();
      add(character);
    }
    if (before === repeatedAt) repeatedAt = -1;
  }
  if (around.length > 0) throw new Wrong(group.at, "missing closing )");
  const { instructions, wide, ranges, empty } = alternative();
  const ends = 2; // one that fails and one that matches
  return {
    instructions: instructions + ends,
    weight: instructions + ends + wide,
    bytes: (instructions + ends) * instructionBytes + ranges * rangeBytes + readBytes,
    matchesEmpty: empty,
  };
}
