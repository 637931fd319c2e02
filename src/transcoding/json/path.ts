import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { fieldsByKey } from "./key-finder.ts";
import { skip } from "./pass-value.ts";
import { string } from "./read-string.ts";
import { colon, endOf, enter, next, quotedKey, scanOf, shortened } from "./scan.ts";

/**
 * The path of the value at an offset of a JSON text, in JSON names: `events[3].severity`, `labels["a b"]`. The text is
 * read again, for errors only; it need not be well-formed from the offset on.
 */
export function pathAt(text: string, offset: number, root: DescMessage | DescField): string {
  const s = scanOf(text, { depthMax: Number.POSITIVE_INFINITY });
  const parts: string[] = [];
  try {
    walk(root.kind === "message" ? root : undefined, root.kind === "field" ? root : undefined);
  } catch {
    // The text breaks off where it is wrong: the path so far is the answer.
  }
  return parts.join("").replace(/^\./, "");

  /** Walks into the value that holds the offset; `false` when it ends before. */
  function walk(message: DescMessage | undefined, field: DescField | undefined): boolean {
    const c = next(s);
    if (s.at >= offset) return true;
    if (c === 123) return walkObject(message, field);
    if (c === 91) return walkList(field);
    const before = s.at;
    skip(s);
    return before <= offset && offset < s.at;
  }

  function walkObject(message: DescMessage | undefined, field: DescField | undefined): boolean {
    enter(s);
    if (next(s) === 125) return leave();
    do {
      next(s);
      const keyAt = s.at;
      if (keyAt > offset) return true;
      const key = string(s);
      const member = message && fieldsByKey(message).get(key);
      parts.push(field?.fieldKind === "map" ? `[${quotedKey(key)}]` : `.${member?.jsonName ?? shortened(key)}`);
      if (keyAt === offset) return true;
      colon(s);
      const inner = field?.fieldKind === "map" ? plain(field.message) : singular(member);
      if (walk(inner, member?.fieldKind === "message" ? undefined : member)) return true;
      parts.pop();
    } while (!endOf(s, 125, "}"));
    return false;
  }

  function walkList(field: DescField | undefined): boolean {
    enter(s);
    if (next(s) === 93) return leave();
    let index = 0;
    do {
      parts.push(`[${index++}]`);
      if (walk(plain(field?.fieldKind === "list" ? field.message : undefined), undefined)) return true;
      parts.pop();
    } while (!endOf(s, 93, "]"));
    return false;
  }

  function leave(): boolean {
    s.at++;
    s.depth--;
    return false;
  }
}

function singular(field: DescField | undefined): DescMessage | undefined {
  return field?.fieldKind === "message" ? plain(field.message) : undefined;
}

/** A message whose JSON form has its fields as keys. */
function plain(message: DescMessage | undefined): DescMessage | undefined {
  return message === undefined || hasCustomJsonRepresentation(message) ? undefined : message;
}

/** The byte at which the character of this offset stands. */
export function byteOffset(text: string, offset: number): number {
  return Buffer.byteLength(text.slice(0, offset));
}

/** The top-level keys of a JSON object, as they are in the text, with the offsets of their values. */
export function keysOf(text: string, from = 0): { key: string; valueAt: number }[] {
  const s = scanOf(text);
  s.at = from;
  const keys: { key: string; valueAt: number }[] = [];
  if (next(s) !== 123) return keys;
  enter(s);
  if (next(s) === 125) return keys;
  do {
    next(s);
    const key = string(s);
    colon(s);
    keys.push({ key, valueAt: s.at });
    skip(s);
  } while (!endOf(s, 125, "}"));
  return keys;
}
