/** The ways in which a matcher compares. */
export const operators = ["=", "!=", "=~", "!~"] as const;
export type Operator = (typeof operators)[number];

/** A matcher, taken apart. */
export interface MatcherParts {
  readonly name: string;
  readonly operator: Operator;
  readonly value: string;
}

const quoted = '"(?:[^"\\\\]|\\\\.)*"';
const written = new RegExp(
  `^\\s*(?<name>[a-zA-Z_:][a-zA-Z0-9_:]*|${quoted})\\s*(?<operator>=~|!~|!=|=)\\s*(?:(?<text>${quoted})|(?<bare>(?:[^"\\\\]|\\\\.)*?))\\s*$`,
  "s",
);

/** Takes a matcher apart. Undefined: only the server can say what it is, or what is wrong with it. */
export function partsOf(text: string): MatcherParts | undefined {
  const { name = "", operator, text: inside, bare = "" } = written.exec(text)?.groups ?? {};
  if (operator === undefined) return undefined;
  return { name: plain(name), operator: operator as Operator, value: inside ? plain(inside) : unescaped(bare) };
}

const plain = (text: string) => (text.startsWith('"') ? unescaped(text.slice(1, -1)) : text);

const unescaped = (text: string) =>
  text.replaceAll(/\\([n"\\])/g, (_, character: string) => (character === "n" ? "\n" : character));
