import { RE2JS, RE2JSSyntaxException } from "re2js";

/** A regular expression that is compared with whole texts. */
export interface LabelPattern {
  /** Compares in time that is linear in the text. */
  matches(text: string): boolean;
  /** How large its machine is: a comparison takes so much longer. */
  readonly instructions: number;
}

/** Where an expression is wrong, and why; `at` counts its code points from 0. */
export interface PatternMistake {
  at: number;
  reason: string;
}

const charactersMax = 1000;
/** Bounds a comparison with a value of 32 KiB to some tens of ms. */
const instructionsMax = 1000;
/** An expression that would be larger with its repetitions written out is not compiled: `(?:…){1000}` is a million instructions. */
const unfoldedMax = 10 * instructionsMax;
const tooComplex = "the expression is too complex";

/**
 * Compiles an expression of RE2's syntax, with every group and flag, for whole texts. It never becomes SQL, so it is not bound to
 * the syntax of clauses.
 */
export function labelPattern(expression: string): LabelPattern | PatternMistake {
  if (codePoints(expression) > charactersMax)
    return { at: 0, reason: `an expression has at most ${charactersMax} characters` };
  if (unfoldedSize(expression) > unfoldedMax) return { at: 0, reason: tooComplex };
  const compiled = compile(expression);
  if (!(compiled instanceof RE2JS)) return { at: placeOf(compiled, expression), reason: reasonOf(compiled) };
  if (compiled.programSize() > instructionsMax) return { at: 0, reason: tooComplex };
  const begin = beginOf(expression);
  return {
    matches: (text) => text.startsWith(begin) && compiled.testExact(text),
    instructions: compiled.programSize(),
  };
}

const countPattern = /\{(\d+)(?:,(\d*))?\}/y;
/** Matches an escape, which stands for one character or class, with the name or digits that belong to it. */
const escapePattern = /\\(?:[pPx]\{[^}]*\}|[^Q])/suy;
const groupPattern = /\((?:\?(?:P?<[^>]*>|[imsU-]*:))?/y;
const flagsPattern = /\(\?[imsU-]+\)/y;

/** Counts the characters and classes of an expression with its repetitions written out, without compiling it. */
function unfoldedSize(expression: string): number {
  /** The groups around a place, each with the size of its finished alternatives and of the one that is read. */
  const around: { finished: number; read: number }[] = [];
  let [finished, read, last] = [0, 0, 0];
  const add = (size: number) => {
    read += size;
    last = size;
  };
  for (let i = 0; i < expression.length; ) {
    const found = (pattern: RegExp) => {
      pattern.lastIndex = i;
      return pattern.exec(expression);
    };
    const c = expression[i];
    const [flags, group, count, escape] = [flagsPattern, groupPattern, countPattern, escapePattern].map(found);
    if (flags) i += flags[0].length;
    else if (group) {
      around.push({ finished, read });
      [finished, read, last] = [0, 0, 0];
      i += group[0].length;
    } else if (c === ")") {
      const size = finished + read;
      ({ finished, read } = around.pop() ?? { finished: 0, read: 0 });
      add(size);
      i += 1;
    } else if (c === "|") {
      // Alternatives of a character each are one class.
      finished += read === 1 ? 0 : read;
      [read, last] = [0, 0];
      i += 1;
    } else if (count) {
      const [text, least = "", most = ""] = count;
      const times = Math.max(Number(least), Number(most), 1);
      read += last * (times - 1);
      last *= times;
      i += text.length;
    } else if (c === "\\" && expression[i + 1] === "Q") {
      const end = expression.indexOf("\\E", i + 2);
      const next = end === -1 ? expression.length : end;
      read += next - i - 2;
      last = 1;
      i = next + 2;
    } else {
      if (c === "[") i = bracketsEnd(expression, i);
      add(c === "*" || c === "+" || c === "?" ? 0 : 1);
      i += escape ? escape[0].length : 1;
    }
  }
  return finished + read;
}

/** Returns what every match begins with, where that is plain to see: a comparison with it takes a tenth of the machine's. */
function beginOf(expression: string): string {
  // Alternatives, flags and quotations may change what the first characters mean.
  if (/\||\(\?|\\Q/.test(expression)) return "";
  const [plain = ""] = /^[\w :/,@%-]*/.exec(expression) ?? [];
  const isRepeated = /^[*+?{]/.test(expression.slice(plain.length));
  return isRepeated ? plain.slice(0, -1) : plain;
}

/** Counts the characters of a text as people see them, not UTF-16's units. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

interface Syntax {
  error: string;
  input: string | null;
}

/** Compiles an expression as a group, or says what is wrong with it: a mistake by itself may be none within the group. */
function compile(expression: string): RE2JS | Syntax {
  try {
    RE2JS.compile(expression);
    // A quotation that is not ended would take the end of the group with it, as it does at Alertmanager.
    return RE2JS.compile(`(?:${expression})`);
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException)) throw error;
    return error as unknown as Syntax;
  }
}

/** Mistakes whose report holds the whole expression. */
const unbalanced: ReadonlySet<string> = new Set(["missing closing )", "unexpected )"]);
/** Mistakes whose report holds all that follows them. */
const reportsRest: ReadonlySet<string> = new Set(["missing closing ]", "invalid named capture"]);

const reasonOf = ({ error, input }: Syntax) =>
  unbalanced.has(error) || reportsRest.has(error) || !input ? error : `${error}: ${input}`;

/** Finds where a mistake is: the library reports its text, but not its place. */
function placeOf({ error, input }: Syntax, expression: string): number {
  if (unbalanced.has(error)) return codePoints(expression.slice(0, unbalancedAt(expression)));
  const reported = input ?? "";
  if (reportsRest.has(error) && expression.endsWith(reported))
    return codePoints(expression.slice(0, expression.length - reported.length));
  // Expressions are read from left to right: from the end of the mistake on every beginning has it.
  let without = 0;
  let having = expression.length;
  while (having - without > 1) {
    const middle = (without + having) >> 1;
    const found = compile(expression.slice(0, middle));
    if (!(found instanceof RE2JS) && found.error === error && found.input === input) having = middle;
    else without = middle;
  }
  const from = Math.max(0, having - Math.max(1, reported.length));
  return codePoints(expression.slice(0, from));
}

/** The place of the parenthesis that has no other, or of the quotation that is not closed. */
function unbalancedAt(expression: string): number {
  const open: number[] = [];
  for (let i = 0; i < expression.length; i++) {
    const c = expression[i];
    if (c === "\\") {
      if (expression[i + 1] === "Q") {
        const end = expression.indexOf("\\E", i + 2);
        if (end < 0) return i;
        i = end + 1;
      } else i += 1;
    } else if (c === "[") i = bracketsEnd(expression, i);
    else if (c === "(") open.push(i);
    else if (c === ")" && open.pop() === undefined) return i;
  }
  return open.at(-1) ?? Math.max(0, expression.length - 1);
}

function bracketsEnd(expression: string, from: number): number {
  let i = expression[from + 1] === "^" ? from + 2 : from + 1;
  if (expression[i] === "]") i += 1;
  for (; i < expression.length && expression[i] !== "]"; i++) {
    const name = /^\[:\^?\w*:\]/.exec(expression.slice(i, i + 20));
    if (name !== null) i += name[0].length - 1;
    else if (expression[i] === "\\") i += 1;
  }
  return i;
}
