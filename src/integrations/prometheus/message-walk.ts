import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { type BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { ConnectError } from "@connectrpc/connect";
import { wireType } from "../../wire/count-binary.ts";

/** A request that cannot be read. */
export class Unreadable extends Error {}

/** Turns whatever a reader of Protobuf throws into Unreadable, but for refusals. @throws Unreadable */
export function orUnreadable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Unreadable || error instanceof ConnectError
      ? error
      : new Unreadable("its Protobuf is broken");
  }
}

const cutOff = () => new Unreadable("the message ends within a field");

/** How the fields of a message are written, by their numbers. */
export interface Shape {
  readonly name: string;
  /** The wire type of a value, or of an element; -1: there is no such field. */
  readonly types: Int8Array;
  /** 1: a list, whose elements may be packed. */
  readonly lists: Uint8Array;
}

const unknownField = -1;

/** The shape that a schema declares. */
export function shapeOf({ name, fields }: DescMessage): Shape {
  const size = Math.max(...fields.map(({ number }) => number)) + 1;
  const types = new Int8Array(size).fill(unknownField);
  const lists = new Uint8Array(size);
  for (const field of fields) {
    types[field.number] = typeOf(field);
    lists[field.number] = field.fieldKind === "list" ? 1 : 0;
  }
  return { name, types, lists };
}

const typeOf = ({ message, scalar }: DescField) =>
  message === undefined ? wireType(scalar) : WireType.LengthDelimited;

/** Reads the tag of the next field: its number times 8, and its wire type. @throws Unreadable for a wire type that the field has not */
export function nextTag(reader: BinaryReader, { name, types, lists }: Shape): number {
  const at = reader.pos;
  const tag = reader.uint32();
  const [field, type] = [tag >>> 3, tag & 7];
  // Groups are of an older Protobuf than remote write is.
  if (field === 0 || type === 3 || type === 4 || type > 5 || reader.pos - at > 5)
    throw new Unreadable("its Protobuf is broken");
  const expected = field < types.length ? types[field] : unknownField;
  if (expected === unknownField || type === expected) return tag;
  if (type === WireType.LengthDelimited && lists[field] === 1) return tag;
  throw new Unreadable(`field ${field} of a ${name} has the wrong wire type`);
}

/** Passes over a value. What ends too late is found where its message ends. */
export function skip(reader: BinaryReader, type: number): void {
  if (type === WireType.Varint) reader.uint32();
  else if (type === WireType.Bit64) reader.pos += 8;
  else if (type === WireType.Bit32) reader.pos += 4;
  else {
    const length = reader.uint32();
    reader.pos += length;
  }
}

/** Reads the length of a value; returns where it ends. @throws Unreadable when that is beyond the message around it */
export function valueEnd(reader: BinaryReader, end: number): number {
  const length = reader.uint32();
  if (length > end - reader.pos) throw cutOff();
  return reader.pos + length;
}

/** @throws Unreadable unless the reader stands where a message ends */
export function checkEnd(reader: BinaryReader, end: number): void {
  if (reader.pos !== end) throw cutOff();
}

/** How many fields a message within a series may have, beside its lists. */
export const fieldsMax = 1000;
export const tooManyFields = `a label, sample or histogram may have at most ${fieldsMax} fields`;

/**
 * Walks over the fields of a message without lists; `read` returns false for those that it leaves. Returns the bound that it
 * exceeds; undefined: none.
 */
export function walk(
  reader: BinaryReader,
  end: number,
  shape: Shape,
  read: (field: number) => boolean,
): string | undefined {
  for (let fields = 0; reader.pos < end; fields++) {
    if (fields === fieldsMax) return tooManyFields;
    const tag = nextTag(reader, shape);
    const [field, type] = [tag >>> 3, tag & 7];
    if (shape.types[field] !== type || !read(field)) skip(reader, type);
  }
  checkEnd(reader, end);
  return undefined;
}
