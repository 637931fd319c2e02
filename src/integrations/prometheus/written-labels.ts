import { isAscii, isUtf8 } from "node:buffer";
import { brokenBytes } from "../series-rules.ts";

/** Characters of a text that an answer shows, and fields of a series that are looked through for it. */
const shownCharactersMax = 200;
export const shownFieldsMax = 10_000;

const bufferOf = (bytes: Uint8Array, from: number, to: number) =>
  Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from);

/** The text between two places; undefined: it is no UTF-8. */
export function strictText(bytes: Uint8Array, from: number, to: number): string | undefined {
  const own = bufferOf(bytes, from, to);
  return isUtf8(own) ? own.toString() : undefined;
}

/** Returns the beginning of a text, whatever its bytes are: at least this many characters, each of at most four bytes. */
export const beginningOf = (bytes: Uint8Array, from: number, to: number, characters: number): string =>
  bufferOf(bytes, from, Math.min(to, from + 4 * characters)).toString();

/** The beginning of a text, as an answer shows it. */
export const shownText = (bytes: Uint8Array, from: number, to: number): string =>
  beginningOf(bytes, from, to, shownCharactersMax);

/** Texts of a request, by where they lie. */
export type TextAt = (from: number, to: number) => string | undefined;

/** Bytes of which one text is made, and the others cut off it: each call that makes one takes longer than that. */
const togetherMax = 16 * 1024;

/** The texts that lie between two places. */
export function textsBetween(bytes: Uint8Array, first: number, last: number): TextAt {
  const own = bufferOf(bytes, first, last);
  if (own.length > togetherMax || !isAscii(own)) return (from, to) => strictText(bytes, from, to);
  const all = own.toString("latin1");
  return (from, to) => all.slice(from - first, to - first);
}

export const notUtf8 = "labels must be UTF-8";

/** The label whose name and value lie there, added to others; returns the rule that it breaks, before its texts are made. */
export function addLabel(
  labels: string[],
  [nameFrom, nameTo, valueFrom, valueTo]: readonly [number, number, number, number],
  textAt: TextAt,
): string | undefined {
  const rule = brokenBytes(nameTo - nameFrom, valueTo - valueFrom);
  if (rule !== undefined) return rule;
  const name = textAt(nameFrom, nameTo);
  const value = textAt(valueFrom, valueTo);
  if (name === undefined || value === undefined) return notUtf8;
  labels.push(name, value);
  return undefined;
}
