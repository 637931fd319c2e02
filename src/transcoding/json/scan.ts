import { type CountLimits, type MessageTally, type Nodes, tallyOf } from "../../wire/message-limits.ts";

/** A JSON text being read, and how far. */
export interface Scan {
  readonly text: string;
  /** The text's UTF-16 units, then a 0: charCodeAt takes three times as long (see bench/transcoding.ts at 13b9aed9). */
  readonly codes: Uint8Array | Uint16Array;
  /** The text's bytes, where each is one character of it; strings are copied out of them. */
  readonly bytes: Buffer | undefined;
  /** Strings that this text has held so far, for texts that repeat them; see read-string.ts. */
  readonly repeats: { readonly strings: string[]; readonly offsets: Int32Array } | undefined;
  at: number;
  depth: number;
  /** The depth of an object that is the content of google.protobuf.Any and so has `@type` among its keys; else -1. */
  typedDepth: number;
  readonly depthMax: number;
  readonly ignoreUnknown: boolean;
  /** Messages of errors quote no values. */
  readonly discreet: boolean;
  /** Counts of all that is made of the text. */
  readonly tally: MessageTally;
  /** What the messages and values at this place count for. */
  nodes: Nodes | undefined;
}

/** What is wrong with a JSON text, at which character of it. */
export interface JsonError extends Error {
  readonly offset: number;
  readonly json: true;
}

const longText = 4096;

interface ScanOptions {
  /** The UTF-8 that the text was made of. */
  bytes?: Buffer;
  depthMax?: number;
  ignoreUnknown?: boolean;
  discreet?: boolean;
  /** How much may be made of the text; without them any. */
  limits?: CountLimits;
  /** Notified of the memory that is needed, as it is. */
  reserve?: (bytes: number) => void;
}

/** For texts of which nothing is made that counts. */
export const unlimited: CountLimits = { itemsMax: Number.POSITIVE_INFINITY, memoryBytesMax: Number.POSITIVE_INFINITY };

/** A scan of the whole text, to be read at once: the next scan may take its place. */
export function scanOf(
  text: string,
  { bytes, depthMax = 100, ignoreUnknown = false, discreet = false, limits = unlimited, reserve }: ScanOptions = {},
): Scan {
  const ascii = bytes?.length === text.length ? bytes : undefined;
  const repeats =
    text.length < longText ? undefined : { strings: new Array<string>(512).fill(""), offsets: new Int32Array(512) };
  return {
    text,
    codes: codesOf(text, ascii),
    bytes: ascii,
    repeats,
    at: 0,
    depth: 0,
    typedDepth: -1,
    depthMax,
    ignoreUnknown,
    discreet,
    tally: tallyOf(limits, reserve),
    nodes: undefined,
  };
}

// One text is read at a time, so that short ones can share their room: a typed array of its own costs a microsecond.
const shortText = 8192;
const shortBytes = new Uint8Array(shortText);
const shortUnits = new Uint16Array(shortText);

function codesOf(text: string, ascii: Buffer | undefined): Uint8Array | Uint16Array {
  const { length } = text;
  if (ascii !== undefined) {
    const codes = length < shortText ? shortBytes : new Uint8Array(length + 1);
    codes.set(ascii);
    codes[length] = 0;
    return codes;
  }
  const codes = length < shortText ? shortUnits : new Uint16Array(length + 1);
  Buffer.from(codes.buffer).write(text, "utf16le");
  codes[length] = 0;
  return codes;
}

/** Throws a JsonError. `offset` counts UTF-16 units. */
export function fail(offset: number, message: string): never {
  throw Object.assign(new Error(message), { offset, json: true as const });
}

/** Whether this was thrown by `fail`. */
export function isJsonError(error: unknown): error is JsonError {
  return error instanceof Error && (error as Partial<JsonError>).json === true;
}

/** Skips white space; returns the next character's code, 0 at the end. */
export function next(s: Scan): number {
  const { codes } = s;
  let { at } = s;
  let c = codes[at] as number;
  while (c === 32 || c === 10 || c === 13 || c === 9) c = codes[++at] as number;
  s.at = at;
  return c;
}

/** Fails on whatever stands here, naming what was expected. */
export function unexpected(s: Scan, expected: string): never {
  next(s);
  if (s.at >= s.text.length) fail(s.at, `the text ends where ${expected} is expected`);
  fail(s.at, `expected ${expected}, found ${excerpt(s)}`);
}

/** The value that starts here, shortened, for messages. */
export function excerpt(s: Scan): string {
  const word = /(?:"(?:[^"\\\n]|\\.){0,40}"?|[\w+.-]{1,40}|.?)/suy;
  word.lastIndex = s.at;
  const found = word.exec(s.text)?.[0] ?? "";
  if (found === "{") return "an object";
  if (found === "[") return "a list";
  if (found === "") return "nothing";
  return s.discreet ? kindOf(found) : found;
}

function kindOf(found: string): string {
  if (found.startsWith('"')) return "a string";
  return /^-?\d/.test(found) ? "a number" : "something else";
}

/** A text from the request, quoted and shortened, for messages. */
export function quotedKey(text: string): string {
  return JSON.stringify(shortened(text));
}

/** The beginning of a long text. */
export function shortened(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80).replace(/[\ud800-\udbff]$/, "")}…` : text;
}

/** Goes into an object or list; fails beyond the permitted nesting. */
export function enter(s: Scan): void {
  if (++s.depth > s.depthMax) fail(s.at, `nested deeper than ${s.depthMax} levels`);
  s.at++;
}

/** Reads `null` if it stands here. */
export function takeNull(s: Scan): boolean {
  if (s.codes[s.at] !== 110) return false;
  word(s, "null");
  return true;
}

/** Reads one of the words `true`, `false`, `null`. */
export function word(s: Scan, text: string): void {
  if (!s.text.startsWith(text, s.at)) unexpected(s, "a value");
  const after = s.codes[s.at + text.length] as number;
  const longer = (after >= 97 && after <= 122) || (after >= 65 && after <= 90) || (after >= 48 && after <= 57);
  if (longer) unexpected(s, "a value");
  s.at += text.length;
}

/** Reads a number by the grammar of JSON and answers its text. */
export function numberText(s: Scan): string {
  const { codes } = s;
  const from = s.at;
  let at = from;
  if (codes[at] === 45) at++;
  if (codes[at] === 48) at++;
  else at = digits(s, codes, at);
  if (codes[at] === 46) at = digits(s, codes, at + 1);
  if (((codes[at] as number) | 32) === 101) {
    at++;
    const sign = codes[at];
    if (sign === 43 || sign === 45) at++;
    at = digits(s, codes, at);
  }
  const c = (codes[at] as number) | 32;
  if ((c >= 97 && c <= 122) || (c >= 48 && c <= 57) || c === 46) unexpected(s, "a number");
  s.at = at;
  return s.text.slice(from, at);
}

function digits(s: Scan, codes: Scan["codes"], from: number): number {
  let at = from;
  let c = codes[at] as number;
  while (c >= 48 && c <= 57) c = codes[++at] as number;
  if (at === from) unexpected(s, "a number");
  return at;
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
export function finishScan(s: Scan): void {
  next(s);
  if (s.at < s.text.length) fail(s.at, `text follows the value: ${excerpt(s)}`);
}
