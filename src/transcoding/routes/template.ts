/** A segment that any one segment matches: `*`, and `{x}`. */
export const ONE = 1;
/** The rest of the path, zero or more segments: `**`. */
export const MANY = 2;

/** A literal (decoded), `ONE` or `MANY`. */
export type PathSegment = string | typeof ONE | typeof MANY;

/** A field bound to the segments from `start` up to, not including, `end`; `end` is -1 when it takes the rest. */
export interface Variable {
  readonly path: readonly string[];
  readonly start: number;
  readonly end: number;
  /** More than one segment: its `%2F` stay as they came. */
  readonly many: boolean;
}

export interface PathTemplate {
  readonly segments: readonly PathSegment[];
  /** What follows the colon of a custom verb (`search` in `/v1/events:search`), decoded; "" when there is none. */
  readonly custom: string;
  readonly variables: readonly Variable[];
}

const literal = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+$/;
const fieldPath = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/;

/**
 * Reads a path template of google.api.http: `/v1/things/{id}/parts/{part=**}:verb`.
 * Throws an Error whose message names what is wrong.
 */
export function parsePathTemplate(text: string): PathTemplate {
  if (!text.startsWith("/")) throw new Error("a path starts with a slash");
  const { path, verb } = splitVerb(text);
  const segments: PathSegment[] = [];
  const variables: Variable[] = [];
  for (const part of splitOutside(path.slice(1), "/")) {
    if (part.startsWith("{")) variables.push(parseVariable(part, segments));
    else segments.push(parseSegment(part));
  }
  const many = segments.indexOf(MANY);
  if (many !== -1 && many !== segments.length - 1) throw new Error("** may only be the last segment");
  for (const [i, variable] of variables.entries()) {
    const name = variable.path.join(".");
    if (variables.findIndex((other) => other.path.join(".") === name) !== i) {
      throw new Error(`{${name}} occurs twice`);
    }
  }
  return { segments, custom: verb === undefined ? "" : decodeLiteral(verb), variables };
}

/** One URL path that a template matches, for messages to people: variables and wildcards become `a`. */
export function examplePath(text: string): string {
  const plain = text.replace(/\{[^{}=]*=([^{}]*)\}/g, "$1").replace(/\{[^{}]*\}/g, "a");
  return plain.replace(/[{}]/g, "").replace(/\*\*|\*/g, "a");
}

function splitVerb(text: string): { path: string; verb: string | undefined } {
  const last = splitOutside(text, "/").pop() ?? "";
  const pieces = splitOutside(last, ":");
  if (pieces.length === 1) return { path: text, verb: undefined };
  const verb = last.slice((pieces[0] ?? "").length + 1);
  return { path: text.slice(0, text.length - verb.length - 1), verb };
}

/** Splits at a character that stands outside braces. */
function splitOutside(text: string, separator: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "{") depth++;
    else if (text[i] === "}") depth--;
    else if (text[i] === separator && depth === 0) {
      parts.push(text.slice(from, i));
      from = i + 1;
    }
    if (depth > 1) throw new Error("a variable stands inside a variable");
    if (depth < 0) throw new Error("a } has no {");
  }
  if (depth !== 0) throw new Error("a { is not closed");
  parts.push(text.slice(from));
  return parts;
}

function parseVariable(part: string, segments: PathSegment[]): Variable {
  if (!part.endsWith("}")) throw new Error(`${JSON.stringify(part)}: a variable takes whole segments`);
  const inside = part.slice(1, -1);
  const equals = inside.indexOf("=");
  const name = equals === -1 ? inside : inside.slice(0, equals);
  if (!fieldPath.test(name)) throw new Error(`${JSON.stringify(name)} is no field path`);
  const start = segments.length;
  if (equals === -1) segments.push(ONE);
  else for (const segment of inside.slice(equals + 1).split("/")) segments.push(parseSegment(segment));
  const rest = segments[segments.length - 1] === MANY;
  return {
    path: name.split("."),
    start,
    end: rest ? -1 : segments.length,
    many: rest || segments.length - start > 1,
  };
}

function parseSegment(text: string): PathSegment {
  if (text === "*") return ONE;
  if (text === "**") return MANY;
  if (text === "") throw new Error("a segment is empty");
  return decodeLiteral(text);
}

function decodeLiteral(text: string): string {
  if (!literal.test(text)) throw new Error(`${JSON.stringify(text)} has a character that a path cannot hold`);
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(`${JSON.stringify(text)} is not UTF-8`);
  }
}
