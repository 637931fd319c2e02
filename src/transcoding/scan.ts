/** A JSON text being read, and how far. */
export interface Scan {
  readonly text: string;
  at: number;
  depth: number;
  /** The depth of an object that is the content of google.protobuf.Any and so has `@type` among its keys; else -1. */
  typedDepth: number;
  readonly depthMax: number;
  readonly ignoreUnknown: boolean;
}

/** What is wrong with a JSON text, at which character of it. */
export interface JsonError extends Error {
  readonly offset: number;
  readonly json: true;
}

const QUOTE = 34;
const BACKSLASH = 92;

/** A scan of the whole text. */
export function scanOf(text: string, options: { depthMax?: number; ignoreUnknown?: boolean } = {}): Scan {
  const { depthMax = 100, ignoreUnknown = false } = options;
  return { text, at: 0, depth: 0, typedDepth: -1, depthMax, ignoreUnknown };
}

/** Throws a JsonError. `offset` counts UTF-16 units. */
export function fail(offset: number, message: string): never {
  throw Object.assign(new Error(message), { offset, json: true as const });
}

/** Whether this was thrown by `fail`. */
export function isJsonError(error: unknown): error is JsonError {
  return error instanceof Error && (error as Partial<JsonError>).json === true;
}

/** Skips white space; answers the next character's code, NaN at the end. */
export function next(s: Scan): number {
  let c = s.text.charCodeAt(s.at);
  while (c === 32 || c === 10 || c === 13 || c === 9) c = s.text.charCodeAt(++s.at);
  return c;
}

/** Fails on whatever stands here, naming what was expected. */
export function unexpected(s: Scan, expected: string): never {
  const c = next(s);
  if (Number.isNaN(c)) fail(s.at, `the text ends where ${expected} is expected`);
  fail(s.at, `expected ${expected}, found ${excerpt(s)}`);
}

/** The value that starts here, shortened, for messages. */
export function excerpt(s: Scan): string {
  const word = /(?:"(?:[^"\\\n]|\\.){0,40}"?|[\w+.-]{1,40}|.?)/suy;
  word.lastIndex = s.at;
  const found = word.exec(s.text)?.[0] ?? "";
  if (found === "{") return "an object";
  if (found === "[") return "a list";
  return found === "" ? "nothing" : found;
}

/** Goes into an object or list; fails beyond the permitted nesting. */
export function enter(s: Scan): void {
  if (++s.depth > s.depthMax) fail(s.at, `nested deeper than ${s.depthMax} levels`);
  s.at++;
}

/** Reads `null` if it stands here. */
export function takeNull(s: Scan): boolean {
  if (s.text.charCodeAt(s.at) !== 110) return false;
  word(s, "null");
  return true;
}

/** Reads one of the words `true`, `false`, `null`. */
export function word(s: Scan, text: string): void {
  const after = s.text.charCodeAt(s.at + text.length);
  const longer = (after >= 97 && after <= 122) || (after >= 65 && after <= 90) || (after >= 48 && after <= 57);
  if (!s.text.startsWith(text, s.at) || longer) unexpected(s, "a value");
  s.at += text.length;
}

/** Reads a string, at its opening quote. */
export function string(s: Scan): string {
  const { text } = s;
  const from = s.at + 1;
  let at = from;
  if (text.charCodeAt(s.at) !== QUOTE) unexpected(s, "a string");
  for (;;) {
    const c = text.charCodeAt(at);
    if (c === QUOTE) {
      s.at = at + 1;
      return text.slice(from, at);
    }
    if (c === BACKSLASH) return escapedString(s, from, at);
    if (!(c >= 32)) endOfString(text, at);
    at++;
  }
}

function endOfString(text: string, at: number): never {
  if (at >= text.length) fail(at, "a string is not closed");
  fail(at, "a control character stands in a string; write it as an escape");
}

function escapedString(s: Scan, from: number, firstEscape: number): string {
  const { text } = s;
  let out = text.slice(from, firstEscape);
  let at = firstEscape;
  for (;;) {
    const c = text.charCodeAt(at);
    if (c === QUOTE) {
      s.at = at + 1;
      return out;
    }
    if (c === BACKSLASH) {
      const kind = text.charCodeAt(at + 1);
      const plain = escapes[kind];
      if (plain !== undefined) {
        out += plain;
        at += 2;
      } else if (kind === 117) {
        const unit = hex4(text, at);
        const pair = unit >= 0xd800 && unit <= 0xdbff && text.startsWith("\\u", at + 6);
        const low = pair ? hex4(text, at + 6) : 0;
        if (unit >= 0xd800 && unit <= 0xdfff && !(low >= 0xdc00 && low <= 0xdfff)) fail(at, "a lone surrogate");
        out += low === 0 ? String.fromCharCode(unit) : String.fromCharCode(unit, low);
        at += low === 0 ? 6 : 12;
      } else if (at + 1 >= text.length) fail(at + 1, "a string is not closed");
      else fail(at, `\\${text[at + 1]} is no escape`);
      continue;
    }
    let to = at;
    let d = c;
    while (d !== QUOTE && d !== BACKSLASH) {
      if (!(d >= 32)) endOfString(text, to);
      d = text.charCodeAt(++to);
    }
    out += text.slice(at, to);
    at = to;
  }
}

const escapes: readonly (string | undefined)[] = Object.assign(new Array<string | undefined>(128).fill(undefined), {
  34: '"',
  47: "/",
  92: "\\",
  98: "\b",
  102: "\f",
  110: "\n",
  114: "\r",
  116: "\t",
});

function hex4(text: string, at: number): number {
  let value = 0;
  for (let i = at + 2; i < at + 6; i++) {
    const c = text.charCodeAt(i);
    let digit = -1;
    if (c >= 48 && c <= 57) digit = c - 48;
    else if (c >= 97 && c <= 102) digit = c - 87;
    else if (c >= 65 && c <= 70) digit = c - 55;
    if (digit === -1) fail(at, "\\u takes four hexadecimal digits");
    value = value * 16 + digit;
  }
  return value;
}

/** Reads a number by the grammar of JSON and answers its text. */
export function numberText(s: Scan): string {
  const { text } = s;
  const from = s.at;
  let at = from;
  if (text.charCodeAt(at) === 45) at++;
  if (text.charCodeAt(at) === 48) at++;
  else at = digits(s, text, at);
  if (text.charCodeAt(at) === 46) at = digits(s, text, at + 1);
  if ((text.charCodeAt(at) | 32) === 101) {
    at++;
    const sign = text.charCodeAt(at);
    if (sign === 43 || sign === 45) at++;
    at = digits(s, text, at);
  }
  const c = text.charCodeAt(at) | 32;
  if ((c >= 97 && c <= 122) || (c >= 48 && c <= 57) || c === 46) unexpected(s, "a number");
  s.at = at;
  return text.slice(from, at);
}

function digits(s: Scan, text: string, from: number): number {
  let at = from;
  let c = text.charCodeAt(at);
  while (c >= 48 && c <= 57) c = text.charCodeAt(++at);
  if (at === from) unexpected(s, "a number");
  return at;
}

/** Reads past any value, checking its form: nesting, escapes, numbers, and that no object has a key twice. */
export function skip(s: Scan): void {
  const c = next(s);
  if (c === QUOTE) string(s);
  else if (c === 123) members(s, () => skip(s));
  else if (c === 91) elements(s, () => skip(s));
  else if (c === 116) word(s, "true");
  else if (c === 102) word(s, "false");
  else if (c === 110) word(s, "null");
  else if (c === 45 || (c >= 48 && c <= 57)) numberText(s);
  else unexpected(s, "a value");
}

/** Reads an object, calling `value` at each value with its key; a key that occurs twice fails. */
export function members(s: Scan, value: (key: string, keyAt: number) => void): void {
  enter(s);
  const seen = new Set<string>();
  for (let c = next(s); c !== 125 || seen.size > 0; c = next(s)) {
    if (c !== QUOTE) unexpected(s, seen.size === 0 ? "a key or }" : "a key");
    const keyAt = s.at;
    const key = string(s);
    if (seen.has(key)) fail(keyAt, `the key ${JSON.stringify(key)} occurs twice`);
    seen.add(key);
    colon(s);
    value(key, keyAt);
    if (endOf(s, 125, "}")) return;
  }
  s.at++;
  s.depth--;
}

/** Reads a list, calling `value` at each element with its index. */
export function elements(s: Scan, value: (index: number) => void): void {
  enter(s);
  if (next(s) === 93) {
    s.at++;
    s.depth--;
    return;
  }
  for (let index = 0; ; index++) {
    next(s);
    value(index);
    if (endOf(s, 93, "]")) return;
  }
}

/** Reads the colon after a key and stops at the value. */
export function colon(s: Scan): number {
  if (next(s) !== 58) unexpected(s, "a colon");
  s.at++;
  return next(s);
}

/** After a value: reads `close` and leaves the object or list (true), or a comma (false). */
export function endOf(s: Scan, close: number, sign: string): boolean {
  const c = next(s);
  if (c === 44) {
    s.at++;
    return false;
  }
  if (c !== close) unexpected(s, `a comma or ${sign}`);
  s.at++;
  s.depth--;
  return true;
}

/** Fails when anything but white space follows. */
export function finish(s: Scan): void {
  if (!Number.isNaN(next(s))) fail(s.at, `text follows the value: ${excerpt(s)}`);
}
