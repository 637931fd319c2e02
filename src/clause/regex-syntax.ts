import { type CharacterSet, charactersOf, inverse, setOf, withBothCases } from "./character-set.ts";

/** A regular expression. Lazy and greedy repetition are the same here: whether there is a match does not depend on it. */
export type ParsedExpression =
  | { kind: "set"; set: CharacterSet }
  | { kind: "sequence"; parts: readonly ParsedExpression[] }
  | { kind: "choice"; options: readonly ParsedExpression[] }
  | { kind: "repeat"; part: ParsedExpression; min: number; max: number | undefined }
  | { kind: "assertion"; of: "start" | "end" | "boundary" | "inside" };

/** What is wrong with an expression; `at` counts its characters from 1. */
export interface Mistake {
  at: number;
  reason: string;
}

const groupsMax = 100;
const countMax = 255;

const digit = charactersOf("0-9");
const space = charactersOf("\t\n\f\r ");
const word = charactersOf("0-9A-Za-z_");
const newline = charactersOf("\n");

/** Sets that a letter after a backslash stands for, in brackets too. */
const sets: Readonly<Record<string, CharacterSet>> = {
  d: digit,
  D: inverse(digit),
  s: space,
  S: inverse(space),
  w: word,
  W: inverse(word),
};

const controls: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r", f: "\f", v: "\v", a: "\x07" };
const assertions = { b: "boundary", B: "inside", A: "start", z: "end" } as const;

/** What `[:name:]` stands for in brackets: ASCII alone. */
const named: Readonly<Record<string, CharacterSet>> = {
  alnum: charactersOf("0-9A-Za-z"),
  alpha: charactersOf("A-Za-z"),
  ascii: charactersOf("\0-\x7f"),
  blank: charactersOf("\t "),
  cntrl: charactersOf("\0-\x1f\x7f"),
  digit,
  graph: charactersOf("!-~"),
  lower: charactersOf("a-z"),
  print: charactersOf(" -~"),
  punct: charactersOf("!-/:-@[-`{-~"),
  space: charactersOf("\t\n\v\f\r "),
  upper: charactersOf("A-Z"),
  word,
  xdigit: charactersOf("0-9A-Fa-f"),
};

/** Reads the part of RE2's syntax that clauses may use. @throws a Mistake. */
export function parseExpression(text: string): ParsedExpression {
  const characters = Array.from(text);
  const foldsCase = text.startsWith("(?i)");
  let at = foldsCase ? 4 : 0;
  const expression = choice(0);
  if (at < characters.length) fail("a closing parenthesis without an opening one", at);
  return expression;

  function fail(reason: string, where: number): never {
    throw { at: where + 1, reason } satisfies Mistake;
  }

  function take(wanted: string): boolean {
    const found = characters.slice(at, at + wanted.length).join("") === wanted;
    if (found) at += wanted.length;
    return found;
  }

  function oneOf(set: CharacterSet): ParsedExpression {
    return { kind: "set", set: foldsCase ? withBothCases(set) : set };
  }

  function choice(depth: number): ParsedExpression {
    const options = [sequence(depth)];
    while (take("|")) options.push(sequence(depth));
    return options.length === 1 ? (options[0] as ParsedExpression) : { kind: "choice", options };
  }

  function sequence(depth: number): ParsedExpression {
    const parts: ParsedExpression[] = [];
    while (at < characters.length && characters[at] !== "|" && characters[at] !== ")") parts.push(repeated(depth));
    return parts.length === 1 ? (parts[0] as ParsedExpression) : { kind: "sequence", parts };
  }

  function repeated(depth: number): ParsedExpression {
    const part = atom(depth);
    const from = at;
    const counts = quantifier();
    if (counts === undefined) return part;
    // PostgreSQL's automaton for these grows without limit.
    if (counts.max !== 1 && holdsAssertion(part) && mayBeEmpty(part))
      fail("a repetition of what may have no characters but holds an assertion", from);
    take("?");
    const next = at;
    if (quantifier() !== undefined) fail("a repetition of a repetition", next);
    return { kind: "repeat", part, ...counts };
  }

  /** The repetition that begins here. Braces without counts are characters like others. */
  function quantifier(): { min: number; max: number | undefined } | undefined {
    if (take("*")) return { min: 0, max: undefined };
    if (take("+")) return { min: 1, max: undefined };
    if (take("?")) return { min: 0, max: 1 };
    const braces = /^\{(\d+)(,?)(\d*)\}/.exec(characters.slice(at, at + 20).join(""));
    if (braces === null) return undefined;
    const [whole, low = "", comma, high = ""] = braces;
    if (comma === "" && high !== "") return undefined;
    const min = Number(low);
    const max = high !== "" ? Number(high) : comma === "" ? min : undefined;
    if (min > countMax || (max ?? 0) > countMax) fail(`a repetition of more than ${countMax}`, at);
    if (max !== undefined && max < min) fail("a repetition whose bounds are the wrong way round", at);
    at += whole.length;
    return { min, max };
  }

  function atom(depth: number): ParsedExpression {
    const from = at;
    if (take("(")) return group(depth, from);
    if (take("[")) return oneOf(brackets(from));
    if (take(".")) return { kind: "set", set: inverse(newline) };
    if (take("^")) return { kind: "assertion", of: "start" };
    if (take("$")) return { kind: "assertion", of: "end" };
    if (take("\\")) return escape(from);
    if (quantifier() !== undefined) fail("a repetition of nothing", from);
    at += 1;
    return oneOf(single(codePoint(from)));
  }

  function group(depth: number, from: number): ParsedExpression {
    if (depth === groupsMax) fail(`groups more than ${groupsMax} deep`, from);
    if (!take("?:") && characters[at] === "?")
      fail("a kind of group that is not allowed; (…), (?:…) and a leading (?i) are", from);
    const inner = choice(depth + 1);
    if (!take(")")) fail("a parenthesis that is not closed", from);
    return inner;
  }

  function escape(from: number): ParsedExpression {
    const letter = characters[at] ?? fail("a backslash at the end", from);
    if (Object.hasOwn(assertions, letter)) {
      at += 1;
      return { kind: "assertion", of: assertions[letter as keyof typeof assertions] };
    }
    if (Object.hasOwn(sets, letter)) {
      at += 1;
      return oneOf(sets[letter] as CharacterSet);
    }
    return oneOf(single(escaped(from)));
  }

  /** The character that an escape stands for, after its backslash. */
  function escaped(from: number): number {
    const letter = characters[at] ?? fail("a backslash at the end", from);
    at += 1;
    if (Object.hasOwn(controls, letter)) return (controls[letter] as string).charCodeAt(0);
    if (letter === "x") return hexadecimal(from);
    if (/^[!-/:-@[-`{-~]$/.test(letter)) return letter.charCodeAt(0);
    return fail(`the escape \\${letter}, which is not allowed`, from);
  }

  function hexadecimal(from: number): number {
    const found = /^(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))/.exec(characters.slice(at, at + 8).join(""));
    const value = Number.parseInt(found?.[1] ?? found?.[2] ?? "", 16);
    if (found === null || value > 0x10ffff) return fail("\\x without the number of a character", from);
    at += found[0].length;
    return value;
  }

  function brackets(from: number): CharacterSet {
    const negated = take("^");
    const ranges: (readonly [number, number])[] = [];
    for (let first = true; first || characters[at] !== "]"; first = false) {
      if (at >= characters.length) fail("a bracket that is not closed", from);
      ranges.push(...bracketPart());
    }
    at += 1;
    // Case is folded before the set is turned round, so that (?i)[^a] leaves out A too.
    const set = foldsCase ? withBothCases(setOf(ranges)) : setOf(ranges);
    return negated ? inverse(set) : set;
  }

  /** A character, a range or a named set within brackets. */
  function bracketPart(): CharacterSet {
    const from = at;
    const name = /^\[:(\^?)([^\]]*):\]/.exec(characters.slice(at, at + 40).join(""));
    if (name !== null) {
      const [whole, negated, key = ""] = name;
      const set = Object.hasOwn(named, key) ? named[key] : undefined;
      if (set === undefined) return fail(`${whole}, which is not allowed`, from);
      at += whole.length;
      return negated === "" ? set : inverse(set);
    }
    if (characters[at] === "\\" && Object.hasOwn(sets, characters[at + 1] ?? "")) {
      at += 2;
      return sets[characters[at - 1] as string] as CharacterSet;
    }
    const first = bracketCharacter();
    if (characters[at] !== "-" || at + 1 >= characters.length || characters[at + 1] === "]") return single(first);
    at += 1;
    const last = bracketCharacter();
    if (last < first) fail("a range whose ends are the wrong way round", from);
    return [[first, last]];
  }

  function bracketCharacter(): number {
    const from = at;
    if (take("\\")) return escaped(from);
    at += 1;
    return codePoint(from);
  }

  function codePoint(where: number): number {
    return (characters[where] as string).codePointAt(0) as number;
  }
}

function mayBeEmpty(expression: ParsedExpression): boolean {
  switch (expression.kind) {
    case "set":
      return false;
    case "assertion":
      return true;
    case "sequence":
      return expression.parts.every(mayBeEmpty);
    case "choice":
      return expression.options.some(mayBeEmpty);
    case "repeat":
      return expression.min === 0 || mayBeEmpty(expression.part);
  }
}

function holdsAssertion(expression: ParsedExpression): boolean {
  switch (expression.kind) {
    case "set":
      return false;
    case "assertion":
      return true;
    case "sequence":
      return expression.parts.some(holdsAssertion);
    case "choice":
      return expression.options.some(holdsAssertion);
    case "repeat":
      return holdsAssertion(expression.part);
  }
}

function single(point: number): CharacterSet {
  return [[point, point]];
}
