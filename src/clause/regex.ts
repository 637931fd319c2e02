import { RE2JS } from "re2js";

/** A regular expression of the allowed syntax, ready for both engines. */
export interface Pattern {
  /** As PostgreSQL's `~` reads it, with the same meaning. */
  readonly postgres: string;
  /** Whether it matches anywhere in a text. */
  matches(text: string): boolean;
}

export function parsePattern(text: string, _path: string): Pattern {
  const compiled = RE2JS.compile(text);
  return { postgres: text, matches: (subject) => compiled.test(subject) };
}
