import type { DescMessage, Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { isRedacted } from "../../wire/redacted.ts";
import { cutText } from "../rendering/template.ts";
import { comparable, type View, viewsOf, withoutRuns } from "./text-views.ts";

/** What stands where a secret stood; a destination that is sent back with it keeps the secret that is stored. */
export const hidden = "********";

const saidCharsMax = 500;
// What is read of an answer, and what looking for secrets in it may take: both are bounded, so that no receiver holds up others.
const readCharsMax = 8192;
const stepsMax = 4_000_000;
const partsMax = 250;
// Shorter ones are not looked for: they are in any text, and hiding them would hide the answer.
const secretCharsMin = 4;
const partCharsMin = 8;
// Of a part that was encoded: what follows is hidden as far as it may belong to it.
const encodedCharsMax = 48;

/** Every secret that a message holds, by the marks of its proto. */
export function secretsOf(desc: DescMessage, message: Message): string[] {
  const view = reflect(desc, message);
  return desc.fields.flatMap((field): string[] => {
    if (!isRedacted(field) || !view.isSet(field)) return [];
    if (field.fieldKind === "message") return secretsOf(field.message, view.get(field).message);
    const value: unknown = view.get(field);
    if (field.fieldKind === "map") return [...(value as Iterable<[unknown, unknown]>)].map(([, each]) => String(each));
    return [String(value)];
  });
}

/** What is secret of a header by itself: what follows its scheme, and what that says in base64. */
function credentialsOf(header: string): string[] {
  const [, scheme = "", credentials = ""] = /^([A-Za-z][\w-]*) +(\S+)$/.exec(header) ?? [];
  if (scheme.toLowerCase() !== "basic") return [credentials];
  const decoded = Buffer.from(credentials, "base64").toString();
  return [credentials, decoded, decoded.slice(decoded.indexOf(":") + 1)];
}

/** A secret, and what of it is secret by itself: the words of a header, the path of an address and its steps. */
function partsOf(secret: string): string[] {
  const words = secret.split(/\s+/);
  const { pathname = "", search = "" } = URL.canParse(secret) ? new URL(secret) : {};
  const steps = [pathname + search, ...`${pathname}${search}`.split(/[/?&=]/)];
  const parts = [...words, ...steps].filter((part) => part.length >= partCharsMin);
  return [secret, ...credentialsOf(secret), ...parts].filter((part) => part.length >= secretCharsMin);
}

/**
 * A text in base64 at each place within groups of three bytes, without the characters that its neighbours share: one of these
 * is in any base64 of what contains the text.
 */
function base64Of(text: string): string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString("base64")
      .replace(/=+$/, "")
      .slice([0, 2, 3][offset], (offset + bytes.length) % 3 === 0 ? undefined : -1),
  );
}

/** How a request contains a text, before the request is encoded as a whole. */
function writtenForms(text: string): string[] {
  return [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    new URLSearchParams({ "": text }).toString().slice(1),
  ];
}

/** What is looked for in a view. */
interface Pattern {
  readonly text: string;
  /** Only the beginning of what is encoded: more of it may follow. */
  readonly open: boolean;
}

const squeezed = (text: string) => text.replace(/ {2,}/g, " ");

/** Whatever a part may look like in a view, by its first characters. */
function patternsOf(parts: Iterable<string>): Map<number, Pattern[]> {
  const known = new Set<string>();
  const found = new Map<number, Pattern[]>();
  const add = (text: string, open: boolean) => {
    if (text.length < secretCharsMin || known.has(text)) return;
    known.add(text);
    const key = beginning(text, 0);
    const same = found.get(key);
    if (same === undefined) found.set(key, [{ text, open }]);
    else same.push({ text, open });
  };
  for (const part of parts) {
    const plain = comparable(part);
    add(plain, false);
    add(squeezed(plain), false);
    const start = part
      .slice(0, encodedCharsMax)
      .replace(/[\uD800-\uDBFF]$/, "")
      .toWellFormed();
    for (const form of new Set(writtenForms(start))) {
      const encoded = [...base64Of(form), Buffer.from(form).toString("hex")];
      for (const text of encoded) {
        const plainEncoded = comparable(text);
        add(plainEncoded, start.length < part.length);
        add(squeezed(plainEncoded), start.length < part.length);
      }
    }
  }
  return found;
}

/** A number for the first characters of a pattern, or of what may be one. */
function beginning(text: string, at: number): number {
  let key = 0;
  for (let i = at; i < at + secretCharsMin; i++) key = (Math.imul(key, 31) + text.charCodeAt(i)) | 0;
  return key;
}

/** How many characters of a pattern a text has at a place. */
function alike(text: string, at: number, pattern: string): number {
  const max = Math.min(pattern.length, text.length - at);
  let count = 0;
  while (count < max && text.charCodeAt(at + count) === pattern.charCodeAt(count)) count++;
  return count;
}

/** Marks in `marks` what belongs to a pattern; returns the steps that it took, about `stepsLeft` at most. */
function mark(
  { text, starts, ends }: View,
  patterns: ReadonlyMap<number, readonly Pattern[]>,
  read: { readonly text: string; readonly isWhole: boolean; readonly marks: Uint8Array },
  stepsLeft: number,
): number {
  let steps = text.length;
  const freeFrom = new Map<Pattern, number>();
  for (let at = 0; at + secretCharsMin <= text.length && steps <= stepsLeft; at++) {
    for (const pattern of patterns.get(beginning(text, at)) ?? []) {
      steps++;
      if ((freeFrom.get(pattern) ?? 0) > at) continue;
      const count = alike(text, at, pattern.text);
      steps += count;
      const isCut = !read.isWhole && at + count === text.length;
      if (count < pattern.text.length && !isCut) continue;
      let end = ends[at + count - 1] as number;
      if (pattern.open) {
        const from = end;
        while (/[\w+/=%\\-]/.test(read.text[end] ?? "")) end++;
        steps += end - from;
      }
      read.marks.fill(1, starts[at], end);
      freeFrom.set(pattern, at + count);
    }
  }
  return steps;
}

/** What is marked of a text, hidden. */
function hiding(text: string, marks: Uint8Array): string {
  let shown = "";
  for (let at = 0; at < text.length; ) {
    const marked = marks[at];
    let end = at + 1;
    while (end < text.length && marks[end] === marked) end++;
    shown += marked === 1 ? hidden : text.slice(at, end);
    at = end;
  }
  return shown;
}

/**
 * What a receiver said, cut short, on one line, and without these secrets, however they were encoded: for a form, an address,
 * JSON or HTML, up to three times over, and in base64 or hexadecimal digits, as they are or as a request holds them. Takes a bounded
 * time: nothing is shown of what would take longer.
 */
export function redacted(said: string, secrets: Iterable<string>): string {
  const parts = new Set([...secrets].flatMap(partsOf));
  if (parts.size > partsMax) return "not shown: the destination has too many secrets to hide";
  const text = said.slice(0, readCharsMax);
  const read = { text, isWhole: text.length === said.length, marks: new Uint8Array(text.length) };
  const patterns = patternsOf(parts);
  let stepsLeft = patterns.size === 0 ? 0 : stepsMax;
  for (const { text: viewed, ...places } of patterns.size === 0 ? [] : viewsOf(text)) {
    const view = { ...places, text: comparable(viewed) };
    for (const each of [view, withoutRuns(view)]) {
      if (each !== undefined) stepsLeft -= mark(each, patterns, read, stepsLeft);
      if (stepsLeft < 0) return "not shown: it would take long to hide the destination's secrets in it";
    }
  }
  return cutText(
    hiding(text, read.marks)
      .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
      .trim(),
    saidCharsMax,
  );
}
