import { hash } from "node:crypto";
import type { Fragment } from "postgres";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { compareCodePoints } from "../clause/code-point-order.ts";
import type { Condition, Indexed } from "../clause/field.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";

// The bytes that are hashed are a stored format: docs/formats/ids.md.
const ENTITY = 1;
const EVENT = 2;
/** Length of an id. */
export const ID_BYTES = 20;

// What is hashed is written here, text by text; longer ones get a buffer of their own.
const shared = Buffer.allocUnsafe(16 * 1024);
const HEAD_BYTES = 17;

/** Writes what is hashed of these texts behind `at`. Returns where it ends. */
function append(input: Buffer, texts: readonly string[], from: number): number {
  let at = from;
  for (const text of texts) {
    const length = input.write(text, at + 4);
    input.writeUInt32BE(length, at);
    at += 4 + length;
  }
  return at;
}

function inputFor(tenantId: string, texts: readonly string[], more: readonly string[] = []): Buffer {
  let bytes = HEAD_BYTES;
  for (const text of texts) bytes += 4 + 3 * text.length;
  for (const text of more) bytes += 4 + 3 * text.length;
  const input = bytes > shared.length ? Buffer.allocUnsafe(bytes) : shared;
  input.write(tenantId.replaceAll("-", ""), 1, "hex");
  return input;
}

/** Hashes to a text, of which bytes are made: a fourth of the time that the hash takes to make them itself. */
function digest(kind: number, input: Buffer, end: number): Buffer {
  input[0] = kind;
  return Buffer.from(hash("sha256", input.subarray(0, end), "hex").slice(0, 2 * ID_BYTES), "hex");
}

/** Dimensions in canonical order, by the code points of their keys: key, value, key, value … */
function canonical(dimensions: Record<string, string>): string[] {
  const keys = Object.keys(dimensions);
  if (keys.length > 1) keys.sort(compareCodePoints);
  return keys.flatMap((key) => [key, dimensions[key] as string]);
}

/** The id of the entity with these dimensions: the same on every replica, 20 bytes. */
export function entityId(tenantId: string, dimensions: Record<string, string>): Buffer {
  const texts = canonical(dimensions);
  const input = inputFor(tenantId, texts);
  return digest(ENTITY, input, append(input, texts, HEAD_BYTES));
}

/** The ids of the event of this name and key (empty: none) on the entity with these dimensions, and of that entity. */
export function eventIds(
  tenantId: string,
  dimensions: Record<string, string>,
  name: string,
  dedupKey = "",
): { entityId: Buffer; eventId: Buffer } {
  const texts = canonical(dimensions);
  const own = dedupKey === "" ? [name] : [name, dedupKey];
  const input = inputFor(tenantId, texts, own);
  const end = append(input, texts, HEAD_BYTES);
  return { entityId: digest(ENTITY, input, end), eventId: digest(EVENT, input, append(input, own, end)) };
}

/** The id as users see it: URL-safe base64, padded, 28 characters. */
export function idText(id: Buffer): string {
  return `${id.toString("base64url")}=`;
}

/** The same in SQL, of a column of ids. */
export function idTextSql(db: Db, column: Fragment): Fragment {
  return db`translate(encode(${column}, 'base64'), '+/', '-_')`;
}

/** A condition on ids as the index on their column answers it. */
export function idIndex(db: Db, column: Fragment, [only]: Condition): Indexed | undefined {
  if (only?.operation !== Operation.OP_EQUALS && only?.operation !== Operation.OP_IN) return undefined;
  const values = only.operation === Operation.OP_IN ? only.value : [only.value];
  const ids = values.flatMap((value) => (typeof value === "string" ? (parseId(value) ?? []) : []));
  return { sql: () => db`${column} = any(${byteaArray(ids)}::bytea[])`, exact: true };
}

// The last of 27 characters has two bits that no byte has: they are zero in its one spelling.
const idSpelling = /^[A-Za-z0-9_-]{26}[AEIMQUYcgkosw048]=$/;

/** The bytes of an id as users write it; undefined when it cannot be one. */
export function parseId(text: string): Buffer | undefined {
  return idSpelling.test(text) ? Buffer.from(text, "base64url") : undefined;
}

/** The bytes of ids as users write them, each once, without texts that cannot be one. */
export function parseIds(texts: readonly string[]): Buffer[] {
  return Array.from(new Set(texts.filter((text) => idSpelling.test(text))), (text) => Buffer.from(text, "base64url"));
}

/** Returns whether a text shows nothing: spaces of any kind, and characters without width. As a name it counts as absent. */
export const isBlank = (text: string): boolean => /^[\s\p{Cf}\u115f\u1160\u2800\u3164\uffa0]*$/u.test(text);

const NAME_CHARACTERS_MAX = 255;

/** What an entity is called before a model names it: its dimensions as `key=value,key=value`, cut to the length of a name. */
export function nameFromDimensions(dimensions: Record<string, string>): string {
  const texts = canonical(dimensions);
  let name = "";
  for (let i = 0; i < texts.length; i += 2) name += `${i > 0 ? "," : ""}${texts[i]}=${texts[i + 1]}`;
  return name.length <= NAME_CHARACTERS_MAX ? name : [...name].slice(0, NAME_CHARACTERS_MAX).join("");
}
