import fc from "fast-check";

/** Characters in which the engines could differ: cases, signs with folds of their own, line ends, spaces, both planes. */
export const characters = [..."aAbkK9_ -\n\t\v\u00a0éſ\u212a\u2028😀].^"] as const;

/** Texts to match, some of them empty. */
export const subjects = fc.array(fc.constantFrom(...characters), { maxLength: 8 }).map((list) => list.join(""));

const literal = fc.constantFrom(
  "a",
  "A",
  "b",
  "k",
  "K",
  "9",
  "_",
  " ",
  "é",
  "ſ",
  "\u212a",
  "😀",
  "\\.",
  "\\^",
  "\\n",
  "\\x41",
  "\\x{1F600}",
  "-",
  "]",
);
const classEscape = fc.constantFrom("\\d", "\\D", "\\s", "\\S", "\\w", "\\W");
const bracketItem = fc.oneof(
  fc.constantFrom(
    "a",
    "K",
    "9",
    "_",
    "é",
    "😀",
    "\\]",
    "\\n",
    "a-c",
    "A-Z",
    "0-9",
    "\\x{e0}-\\x{1FFFF}",
    "[:alpha:]",
    "[:^space:]",
    "[:punct:]",
  ),
  classEscape,
);
const brackets = fc
  .tuple(fc.constantFrom("", "^"), fc.array(bracketItem, { minLength: 1, maxLength: 4 }))
  .map(([negated, items]) => `[${negated}${items.join("")}]`);
const repetition = fc.tuple(
  fc.constantFrom("*", "+", "?", "{2}", "{0}", "{1,}", "{0,2}", "{1,3}"),
  fc.constantFrom("", "?"),
);

const { expression } = fc.letrec<{ expression: string; branch: string; piece: string; group: string }>((tie) => ({
  expression: fc
    .array(tie("branch"), { minLength: 1, maxLength: 3, depthIdentifier: "re" })
    .map((all) => all.join("|")),
  branch: fc.array(tie("piece"), { maxLength: 4, depthIdentifier: "re" }).map((all) => all.join("")),
  piece: fc.oneof(
    { depthSize: "small", depthIdentifier: "re" },
    literal,
    fc.constantFrom("."),
    classEscape,
    brackets,
    fc.constantFrom("^", "$", "\\b", "\\B", "\\A", "\\z"),
    tie("group"),
    fc
      .tuple(fc.oneof(literal, fc.constant("."), classEscape, brackets, tie("group")), repetition)
      .map(([atom, [count, lazy]]) => atom + count + lazy),
  ),
  group: fc.tuple(fc.constantFrom("(", "(?:"), tie("expression")).map(([open, inner]) => `${open}${inner})`),
}));

/** Regular expressions of the allowed syntax. */
export const patterns = fc.tuple(fc.constantFrom("", "", "(?i)"), expression).map(([flag, text]) => flag + text);
