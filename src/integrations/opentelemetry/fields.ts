import { invalidValue } from "../../wire/status.ts";

/** A place in the bytes of a message, field by field. One object serves all fields of a message: points are many. */
export interface Fields {
  readonly bytes: Uint8Array;
  readonly view: DataView;
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

/** The error of what is no Protobuf, or of another message. */
export const undecodable = (reason: string) => invalidValue("", `the message cannot be decoded: ${reason}`);
const broken = () => undecodable("it ends within a field, or is no Protobuf");

/** What `read` decodes. @throws code 3 for what cannot be decoded */
export function decoded<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw undecodable((error as Error).message);
  }
}

/** Begins at the first field of a message. */
export function fieldsOf(bytes: Uint8Array, at = 0, end = bytes.byteLength): Fields {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { bytes, view, at, end, field: 0, type: 0, start: at, from: 0, to: 0, number: 0 };
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

/** Goes to the next field; false: there is none. @throws code 3 for what is no Protobuf */
export function next(all: Fields): boolean {
  if (all.at === all.end) return false;
  all.start = all.at;
  const tag = readVarint(all);
  all.type = tag % 8;
  all.field = Math.floor(tag / 8);
  if (all.field === 0 || tag >= 2 ** 32) throw broken();
  if (all.type === varint) all.number = readVarint(all);
  let length = 0;
  if (all.type === fixed64) length = 8;
  else if (all.type === delimited) length = readVarint(all);
  else if (all.type === 5) length = 4;
  else if (all.type !== varint) throw broken();
  all.from = all.at;
  all.to = all.at += length;
  if (all.to > all.end) throw broken();
  return true;
}

/** The bytes of the value. */
export const valueBytes = ({ bytes, from, to }: Fields) => bytes.subarray(from, to);

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The value as a text. @throws code 3 for what is no UTF-8 */
export function valueText(all: Fields): string {
  try {
    return strict.decode(valueBytes(all));
  } catch {
    throw undecodable("a text is no UTF-8");
  }
}

/** Bytes as a text; others have another one. */
export const latin1 = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
