import type { DescMessage, Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { isRedacted } from "../wire/redacted.ts";
import { cutText } from "./template.ts";

/** What stands where a secret stood; a destination that is sent back with it keeps the secret that is stored. */
export const hidden = "********";

const saidCharsMax = 500;
// Each form of each secret is looked for in what is read of an answer: both are bounded, so that no receiver holds up others.
const readCharsMax = 16_384;
const partsMax = 500;
const base64CharsMin = 8;
// Shorter ones hide nothing but the answer.
const secretCharsMin = 4;
const partCharsMin = 8;

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

/** A secret, and what of it is secret by itself: the words of a header, the path of an address and its steps. */
function partsOf(secret: string): string[] {
  const words = secret.split(/\s+/);
  const { pathname = "", search = "" } = URL.canParse(secret) ? new URL(secret) : {};
  const steps = [pathname + search, ...`${pathname}${search}`.split(/[/?&=]/)];
  return [secret, ...[...words, ...steps].filter((part) => part.length >= partCharsMin)];
}

/** The ways in which a receiver may write a secret that it was sent. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  // At each place within groups of three bytes, without the characters that its neighbours share.
  const base64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString("base64")
      .replace(/=+$/, "")
      .slice(offset === 0 ? 0 : 4, -1),
  );
  const encoded = [
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
    bytes.toString("hex"),
  ];
  const texts = [secret, encodeURIComponent(secret.toWellFormed()), JSON.stringify(secret).slice(1, -1)];
  return [...texts, ...encoded.filter((text) => text.length >= base64CharsMin)];
}

/** What a receiver said, cut short, on one line, and without these secrets in whatever form; nothing of it for too many. */
export function redacted(said: string, secrets: Iterable<string>): string {
  const long = [...secrets].filter((secret) => secret.length >= secretCharsMin);
  const parts = new Set(long.flatMap(partsOf));
  if (parts.size > partsMax) return "not shown: the destination has too many secrets to hide";
  // The longest first: one secret may be a part of another.
  const forms = [...new Set([...parts].flatMap(formsOf))].sort((a, b) => b.length - a.length);
  // Where reading ends, the beginning of a form may stand.
  const endChars = forms[0]?.length ?? 0;
  let text = said.slice(0, readCharsMax + endChars);
  const isWhole = text.length === said.length;
  for (const form of forms) text = text.replaceAll(form, hidden);
  if (!isWhole) text = text.slice(0, Math.max(0, text.length - endChars));
  return cutText(text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim(), saidCharsMax);
}
