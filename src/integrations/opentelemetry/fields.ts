import { Code } from "@connectrpc/connect";
import { invalidValue, refusalOf } from "../../wire/status.ts";

/** Fields of a request that its readers have walked over, each time they do. */
export interface Walk {
  fields: number;
  readonly fieldsMax: number;
  /** Readers pause when they get there. */
  pauseAt: number;
}

/** A place in the bytes of a message, field by field. One object serves all fields of a message: points are many. */
export interface Fields {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly walk: Walk;
  at: number;
  readonly end: number;
  /** The field that `next` has found, its wire type, where it begins, and where its value lies. */
  field: number;
  type: number;
  start: number;
  from: number;
  to: number;
  /** Of a varint; of what needs more than 53 bits, about. */
  number: number;
}

export const varint = 0;
export const fixed64 = 1;
export const delimited = 2;

const pauseFields = 10_000;
/** Bytes for each time that a reader comes by a field: attributes that name a new series are looked at five times, and take more. */
const fieldBytesMin = 2;

/** Counts the fields of a request of at most `bytesMax` bytes. @param bytesEach what a field takes at least, on average */
export function walkOf(bytesMax: number, bytesEach = fieldBytesMin): Walk {
  return { fields: 0, fieldsMax: Math.ceil(bytesMax / bytesEach), pauseAt: pauseFields };
}

/** Counts one more field. @throws code 8 where the request has too many */
export function passField(walk: Walk): void {
  walk.fields += 1;
  if (walk.fields > walk.fieldsMax) throw tooMany(walk);
}

/** Whether a reader has walked over so many fields that it should let others go on. */
export function pauseDue(walk: Walk): boolean {
  if (walk.fields < walk.pauseAt) return false;
  walk.pauseAt = walk.fields + pauseFields;
  return true;
}

/** The error of what is no Protobuf, or of another message. */
export const undecodable = (reason: string) => invalidValue("", `the message cannot be decoded: ${reason}`);
const broken = () => undecodable("it ends within a field, or is no Protobuf");
const tooMany = ({ fieldsMax }: Walk) =>
  refusalOf(Code.ResourceExhausted, 413, `a request may have at most ${fieldsMax} fields; send fewer at once`);

/** Begins at the first field of a message. */
export function fieldsOf(bytes: Uint8Array, walk: Walk): Fields {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.byteLength;
  return { bytes, view, walk, at: 0, end, field: 0, type: 0, start: 0, from: 0, to: 0, number: 0 };
}

/** Begins at the first field of a message that lies within another one; absent: in the field that was found there. */
export function fieldsWithin({ bytes, view, walk, from, to }: Fields, at = from, end = to): Fields {
  return { bytes, view, walk, at, end, field: 0, type: 0, start: at, from: 0, to: 0, number: 0 };
}

function readVarint(all: Fields): number {
  let number = 0;
  for (let i = 0, factor = 1; i < 10 && all.at < all.end; i += 1, factor *= 128) {
    const byte = all.bytes[all.at++] as number;
    number += (byte & 127) * factor;
    if (byte < 128) return number;
  }
  throw broken();
}

/** Goes to the next field; false: there is none. @throws code 3 for what is no Protobuf, code 8 where the request has too many */
export function next(all: Fields): boolean {
  if (all.at === all.end) return false;
  passField(all.walk);
  all.start = all.at;
  const tag = readVarint(all);
  all.type = tag % 8;
  all.field = Math.floor(tag / 8);
  if (all.field === 0 || tag >= 2 ** 32) throw broken();
  all.from = all.at;
  let length = 0;
  if (all.type === varint) all.number = readVarint(all);
  else if (all.type === fixed64) length = 8;
  else if (all.type === delimited) {
    length = readVarint(all);
    all.from = all.at;
  } else if (all.type === 5) length = 4;
  else throw broken();
  all.to = all.at += length;
  if (all.to > all.end) throw broken();
  return true;
}

/** The bytes of the value. */
export const valueBytes = ({ bytes, from, to }: Fields) => bytes.subarray(from, to);

/** A decoder takes longer to begin than such a text has bytes. */
const shortBytes = 64;
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Bytes that a character takes at most. */
const characterBytes = 4;

/**
 * The value as a text. Of one that is longer than `charactersMax` only so much that it is still longer: what nobody may send
 * is not made. @throws code 3 for what is no UTF-8
 */
export function valueText(all: Fields, charactersMax = Number.POSITIVE_INFINITY): string {
  const { bytes, from } = all;
  if (all.to - from <= shortBytes && isAscii(bytes, from, all.to))
    return Buffer.prototype.latin1Slice.call(bytes, from, all.to);
  let to = Math.min(all.to, from + (charactersMax + 2) * characterBytes);
  // A text ends before the first byte of a character.
  if (to < all.to) while (to > from && ((bytes[to] as number) & 0xc0) === 0x80) to -= 1;
  try {
    return strict.decode(bytes.subarray(from, to));
  } catch {
    throw undecodable("a text is no UTF-8");
  }
}

function isAscii(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if ((bytes[at] as number) > 127) return false;
  return true;
}

/** The value of a varint as a signed integer of 64 bits: a number where it is exact. */
export function valueInteger({ bytes, from, to, number }: Fields): number | bigint {
  if (number <= Number.MAX_SAFE_INTEGER) return number;
  let integer = 0n;
  for (let at = to - 1; at >= from; at -= 1) integer = (integer << 7n) | BigInt((bytes[at] as number) & 127);
  const signed = BigInt.asIntN(64, integer);
  return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed;
}

/** ms of nanoseconds in 8 bytes; without a bigint, since points are many. */
export function valueMs({ view, from }: Fields): number {
  const high = view.getUint32(from + 4, true);
  // 2^32 ns are 4294 ms and 967,296 ns.
  return high * 4294 + Math.floor((high * 967_296 + view.getUint32(from, true)) / 1e6);
}
