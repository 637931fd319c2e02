import { fail, type Scan, unexpected } from "./scan.ts";

const QUOTE = 34;
const BACKSLASH = 92;
// V8 copies shorter strings anyway.
const copied = 13;

/** Reads a string, at its opening quote. */
export function string(s: Scan): string {
  const { codes } = s;
  const from = s.at + 1;
  let at = from;
  if (codes[s.at] !== QUOTE) unexpected(s, "a string");
  let hash = 0;
  for (;;) {
    const c = codes[at] as number;
    if (c === QUOTE) break;
    if (c === BACKSLASH) return escapedString(s, from, at);
    if (c < 32) endOfString(s.text, at);
    hash = (Math.imul(hash, 31) + c) | 0;
    at++;
  }
  s.at = at + 1;
  return at - from < copied ? s.text.slice(from, at) : repeated(s, hash, from, at);
}

/** Reads a key, which is used to look up: one string for all its occurrences in the text. */
export function key(s: Scan): string {
  const { codes } = s;
  const from = s.at + 1;
  let at = from;
  if (codes[s.at] !== QUOTE) unexpected(s, "a key");
  let hash = 0;
  let c = codes[at] as number;
  while (c !== QUOTE) {
    if (c === BACKSLASH || c < 32) return string(s);
    hash = (Math.imul(hash, 31) + c) | 0;
    c = codes[++at] as number;
  }
  s.at = at + 1;
  return repeated(s, hash, from, at);
}

const repeatedMax = 64;

/** The string of these characters; the one that was made of equal ones before, in a long text. */
function repeated(s: Scan, hash: number, from: number, to: number): string {
  const { repeats, codes } = s;
  if (repeats === undefined || to - from > repeatedMax) return copy(s, from, to);
  const slot = hash & (repeats.strings.length - 1);
  const known = repeats.strings[slot] as string;
  if (known.length === to - from) {
    const start = repeats.offsets[slot] as number;
    let i = 0;
    while (i < known.length && codes[start + i] === codes[from + i]) i++;
    if (i === known.length) return known;
  }
  const made = copy(s, from, to);
  repeats.strings[slot] = made;
  repeats.offsets[slot] = from;
  return made;
}

/** A string of its own: a slice would keep the whole text in memory for as long as the slice is kept. */
function copy({ text, bytes }: Scan, from: number, to: number): string {
  if (to - from < copied) return text.slice(from, to);
  return bytes === undefined
    ? (JSON.parse(text.slice(from - 1, to + 1)) as string)
    : bytes.toString("latin1", from, to);
}

function endOfString(text: string, at: number): never {
  if (at >= text.length) fail(at, "a string is not closed");
  fail(at, "a control character stands in a string; write it as an escape");
}

/** Checks the rest of a string that has escapes and leaves its making to JSON.parse. */
function escapedString(s: Scan, from: number, firstEscape: number): string {
  const { text, codes } = s;
  let at = firstEscape;
  for (;;) {
    const c = codes[at] as number;
    if (c === QUOTE) {
      s.at = at + 1;
      return JSON.parse(text.slice(from - 1, at + 1)) as string;
    }
    if (c === BACKSLASH) at += escapeLength(text, at);
    else if (c >= 32) at++;
    else endOfString(text, at);
  }
}

function escapeLength(text: string, at: number): number {
  const kind = text.charCodeAt(at + 1);
  if (kind !== 117) {
    if (Number.isNaN(kind)) fail(at + 1, "a string is not closed");
    if (!'"\\/bfnrt'.includes(String.fromCharCode(kind))) fail(at, `\\${text[at + 1]} is no escape`);
    return 2;
  }
  const unit = hex4(text, at);
  if (unit < 0xd800 || unit > 0xdfff) return 6;
  const low = unit <= 0xdbff && text.startsWith("\\u", at + 6) ? hex4(text, at + 6) : 0;
  if (low < 0xdc00 || low > 0xdfff) fail(at, "a lone surrogate");
  return 12;
}

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
