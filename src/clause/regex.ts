import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../errors.ts";
import { type CharacterSet, storableCharacters } from "./character-set.ts";
import { type Expression, readExpression } from "./expression.ts";
import { type Mistake, type ParsedExpression, parseExpression } from "./regex-syntax.ts";

/** A regular expression of the allowed syntax, for both engines. */
export interface Pattern {
  /** As PostgreSQL's `~` reads it under `collate "C"`, with the same meaning. */
  readonly postgres: string;
  /** As re2js reads it; it matches anywhere in a text. */
  readonly expression: Expression;
  readonly beyond: WhenTooCostly;
}

/**
 * What a comparison comes to in PostgreSQL that would take too many steps: a request is refused; of what is stored, which is accepted even if it
 * would not be today, the row matches or not.
 */
export type WhenTooCostly = "refuse" | "match" | "differ";

const charactersMax = 10_000;

/** Reads a regular expression. @throws code 3 with the position of what is outside of the allowed syntax. */
export function parsePattern(text: string, path: string, beyond: WhenTooCostly = "refuse"): Pattern {
  const syntax = text.length > charactersMax ? undefined : read(text, path);
  const expression = syntax && !isTooComplex(syntax) ? readExpression(written(syntax, re2), false) : undefined;
  if (syntax === undefined || expression === undefined || (beyond === "refuse" && expression.refusal !== undefined))
    throw invalidField(
      path,
      "is too complex: it has too many characters, or too many that may be left out, counting repetitions",
      FieldRule.REGULAR_EXPRESSION,
    );
  return { postgres: written(syntax, postgres), expression, beyond };
}

function read(text: string, path: string): ParsedExpression {
  try {
    return parseExpression(text);
  } catch (error) {
    const { at, reason } = error as Partial<Mistake>;
    if (reason === undefined) throw error;
    throw invalidField(
      path,
      `must be a regular expression of the allowed syntax; at character ${at} it has ${reason}`,
      FieldRule.REGULAR_EXPRESSION,
    );
  }
}

/** How an engine spells what differs between the two. */
interface Dialect {
  character(point: number): string;
  nothing: string;
  start: string;
  end: string;
  boundary: string;
  inside: string;
}

const isPlain = (point: number) => /^[0-9A-Za-z]$/.test(String.fromCodePoint(point));
const hex = (point: number, digits = 0) => point.toString(16).padStart(digits, "0");

const re2: Dialect = {
  character: (point) => (isPlain(point) ? String.fromCodePoint(point) : `\\x{${hex(point)}}`),
  nothing: "[^\\x{0}-\\x{10ffff}]",
  start: "\\A",
  end: "\\z",
  boundary: "\\b",
  inside: "\\B",
};

const postgres: Dialect = {
  character: (point) => {
    if (isPlain(point)) return String.fromCodePoint(point);
    return point > 0xffff ? `\\U${hex(point, 8)}` : `\\u${hex(point, 4)}`;
  },
  nothing: "(?!)",
  start: "\\A",
  end: "\\Z",
  boundary: "\\y",
  inside: "\\Y",
};

/** Only forms that both engines read alike; sets are spelled out, so that they depend on no locale and no flag. */
function written(expression: ParsedExpression, dialect: Dialect): string {
  switch (expression.kind) {
    case "set":
      return writtenSet(storableCharacters(expression.set), dialect);
    case "assertion":
      return dialect[expression.of];
    case "sequence":
      return expression.parts.map((part) => grouped(part, dialect)).join("");
    case "choice":
      return `(?:${expression.options.map((option) => grouped(option, dialect)).join("|")})`;
    case "repeat": {
      const { part, min, max } = expression;
      return `(?:${written(part, dialect)})${counts(min, max)}`;
    }
  }
}

function grouped(part: ParsedExpression, dialect: Dialect): string {
  return part.kind === "sequence" ? `(?:${written(part, dialect)})` : written(part, dialect);
}

function counts(min: number, max: number | undefined): string {
  if (max === undefined) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  return min === 0 && max === 1 ? "?" : min === max ? `{${min}}` : `{${min},${max}}`;
}

function writtenSet(set: CharacterSet, { character, nothing }: Dialect): string {
  const [only] = set;
  if (only === undefined) return nothing;
  if (set.length === 1 && only[0] === only[1]) return character(only[0]);
  const ranges = set.map(([first, last]) =>
    first === last ? character(first) : `${character(first)}-${character(last)}`,
  );
  return `[${ranges.join("")}]`;
}

/** What makes PostgreSQL's machine for an expression large, with repetitions counted out. */
interface Size {
  characters: number;
  /** Parts that may be left out: the time to build the machine grows with their cube. */
  gaps: number;
  assertions: number;
}

const most: Size = { characters: 1000, gaps: 64, assertions: 32 };
const productMax = 10_000;

/**
 * Whether PostgreSQL might need long for an expression, or give it up. The bounds
 * are measured: design/entities.
 */
export function isTooComplex(expression: ParsedExpression): boolean {
  const { characters, gaps, assertions } = sizeOf(expression);
  return (
    characters > most.characters ||
    gaps > most.gaps ||
    assertions > most.assertions ||
    characters * (gaps + 1) > productMax
  );
}

function sizeOf(expression: ParsedExpression): Size {
  switch (expression.kind) {
    case "set":
      return { characters: 1, gaps: 0, assertions: 0 };
    case "assertion":
      return { characters: 1, gaps: 0, assertions: 1 };
    case "sequence":
      return sum(expression.parts.map(sizeOf));
    case "choice": {
      const sizes = expression.options.map(sizeOf);
      const empty = sizes.filter(({ characters }) => characters === 0).length;
      return sum([...sizes, { characters: sizes.length, gaps: empty, assertions: 0 }]);
    }
    case "repeat": {
      const { part, min, max } = expression;
      const { characters, gaps, assertions } = sizeOf(part);
      const times = Math.max(1, max ?? min);
      return {
        characters: Math.max(1, characters) * times,
        gaps: gaps * times + (min === 0 ? 1 : 0),
        assertions: assertions * times,
      };
    }
  }
}

function sum(sizes: readonly Size[]): Size {
  const total = { characters: 0, gaps: 0, assertions: 0 };
  for (const { characters, gaps, assertions } of sizes) {
    total.characters += characters;
    total.gaps += gaps;
    total.assertions += assertions;
  }
  return total;
}
