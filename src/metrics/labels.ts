import { hash } from "node:crypto";
import { compareCodePoints } from "../clause/code-point-order.ts";

/** What distinguishes series of one metric on one entity, without empty values. */
export type Labels = Readonly<Record<string, string>>;

/** Characters of labels, and of a value, by which series are ordered and found: an index takes no more. */
const beginChars = 255;

/** Labels without empty values; undefined: there are none. */
export function presentLabels(labels: Labels): Labels | undefined {
  let count = 0;
  let present = 0;
  for (const key in labels) {
    count += 1;
    if (labels[key] !== "") present += 1;
  }
  if (present === 0) return undefined;
  return present === count ? labels : Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== ""));
}

/** What distinguishes labels from all others: empty for none, else it begins with NUL, which occurs in no metric's name. */
export function labelsKey(labels: Labels | undefined): string {
  if (labels === undefined) return "";
  const names = Object.keys(labels);
  if (names.length > 1) names.sort();
  let key = "";
  for (const name of names) key += `\0${name}\0${labels[name]}`;
  return key;
}

/** A metric and labels as one text. */
export const namesText = (metric: string, labels: Labels | undefined): string => metric + labelsKey(labels);

/** The metric and labels of a `namesText`. */
export function namesIn(text: string): { metric: string; labels: Labels | undefined } {
  const [metric = "", ...texts] = text.split("\0");
  if (texts.length === 0) return { metric, labels: undefined };
  const labels: [string, string][] = [];
  for (let i = 0; i < texts.length; i += 2) labels.push([texts[i] as string, texts[i + 1] as string]);
  return { metric, labels: Object.fromEntries(labels) };
}

/** Key, value, key, value … in the order of the keys' code points. */
function canonical(labels: Labels): string[] {
  const keys = Object.keys(labels).sort(compareCodePoints);
  return keys.flatMap((key) => [key, labels[key] as string]);
}

/** The bytes of labels that ids are made of: docs/formats/ids.md. */
export function labelsBytes(labels: Labels): Buffer<ArrayBuffer> {
  const texts = canonical(labels);
  const lengths = texts.map((text) => Buffer.byteLength(text));
  const bytes = Buffer.alloc(lengths.reduce((sum, length) => sum + 4 + length, 0));
  let at = 0;
  for (const [i, text] of texts.entries()) {
    at = bytes.writeUInt32BE(lengths[i] as number, at);
    at += bytes.write(text, at);
  }
  return bytes;
}

/** The first characters of a text. */
const begin = (text: string) => (text.length <= beginChars ? text : [...text].slice(0, beginChars).join(""));

/** The beginning of a label's value, by which its series is found. */
export const valueBegin = begin;

const noHash = Buffer.alloc(0);

/** What series are ordered by within a metric: the beginning of their labels, then what distinguishes all labels. */
export function labelsOrder(labels: Labels | undefined): { begin: string; hash: Buffer } {
  if (labels === undefined) return { begin: "", hash: noHash };
  const texts = canonical(labels);
  let text = "";
  for (let i = 0; i < texts.length && text.length <= 2 * beginChars; i += 2) {
    text += `${i > 0 ? "," : ""}${texts[i]}=${texts[i + 1]}`;
  }
  return { begin: begin(text), hash: hash("sha256", labelsBytes(labels), "buffer").subarray(0, 20) };
}
