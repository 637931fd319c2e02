import type { DescMessage, Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { isRedacted } from "../../wire/redacted.ts";
import { escapeHtml } from "../templates/markup.ts";
import { cutText } from "../templates/template.ts";

/** What stands where a secret stood; a destination that is sent back with it keeps the secret that is stored. */
export const hidden = "********";

const saidCharsMax = 500;
// Both bound the work that a receiver can cause: so much of an answer is read, and so many parts of secrets are looked for.
const readCharsMax = 8192;
const partsMax = 250;
// Shorter ones are not looked for: they are in any text, and hiding them would hide the answer.
const secretCharsMin = 4;
const partCharsMin = 8;
/** A longer form of a secret is recognised by so many characters, and hidden as far as it goes on. */
const searchedCharsMax = 48;

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
 * Returns a text in base64 at each place within groups of three bytes, without the characters that its neighbours share: one of these
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

/** In small letters, at the same length: hexadecimal digits are written in both. */
const comparable = (text: string) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/** Returns the forms in which an answer may repeat a part of a secret: of an address, a form, JSON, HTML, base64, hexadecimal digits. */
function formsOf(part: string): string[] {
  const text = part.toWellFormed();
  const form = new URLSearchParams({ "": text }).toString().slice(1);
  const json = JSON.stringify(text).slice(1, -1);
  const ascii = json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const escaped = [json, ascii].flatMap((each) => [each, each.replaceAll("/", "\\/")]);
  const base64 = base64Of(text);
  const base64Url = base64.map((each) => each.replaceAll("+", "-").replaceAll("/", "_"));
  const address = [encodeURIComponent(text), form, form.replaceAll("+", "%20")];
  const hex = Buffer.from(text).toString("hex");
  return [part, ...address, ...escaped, escapeHtml(text), ...base64, ...base64Url, hex].map(comparable);
}

/** Returns the places of a form in a text, each with its end. A form that the end of the text cuts off is found, too. */
function* placesOf(form: string, text: string, isCut: boolean): Generator<[number, number]> {
  const searched = form.slice(0, searchedCharsMax);
  for (let at = text.indexOf(searched); at >= 0; ) {
    let end = at + searched.length;
    while (end < text.length && text[end] === form[end - at]) end++;
    yield [at, end];
    at = text.indexOf(searched, end);
  }
  for (let count = isCut ? searched.length - 1 : 0; count >= secretCharsMin; count--) {
    if (text.endsWith(form.slice(0, count))) yield [text.length - count, text.length];
  }
}

/** Returns a text with each run of marked characters hidden. */
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
 * Returns what a receiver said, cut short, on one line, and without these secrets as they are and in the forms in which servers
 * repeat what they were sent. A form within another one is not looked for.
 */
export function redacted(said: string, secrets: Iterable<string>): string {
  const parts = new Set([...secrets].flatMap(partsOf));
  if (parts.size > partsMax) return "not shown: the destination has too many secrets to hide";
  const text = said.slice(0, readCharsMax);
  const compared = comparable(text);
  const marks = new Uint8Array(text.length);
  for (const form of new Set([...parts].flatMap(formsOf))) {
    for (const [at, end] of placesOf(form, compared, text.length < said.length)) marks.fill(1, at, end);
  }
  return cutText(
    hiding(text, marks)
      .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
      .trim(),
    saidCharsMax,
  );
}
