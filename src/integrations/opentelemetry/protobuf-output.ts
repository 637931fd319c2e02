import { ScalarType } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { string } from "../../transcoding/json/read-string.ts";
import { type Scan, unexpected } from "../../transcoding/json/scan.ts";
import { refusalOf } from "../../wire/status.ts";

/** A message in Protobuf that is being written. */
export interface Output {
  bytes: Buffer;
  view: DataView;
  at: number;
  readonly bytesMax: number;
}

const viewOf = ({ buffer, byteOffset, byteLength }: Buffer) => new DataView(buffer, byteOffset, byteLength);
const varintBytesMax = 10;
/** Characters from which bytes are copied as a whole. */
const longText = 64;

/** Begins with room for this many bytes. */
export function outputOf(bytesFirst: number, bytesMax: number): Output {
  const bytes = Buffer.allocUnsafe(bytesFirst);
  return { bytes, view: viewOf(bytes), at: 0, bytesMax };
}

/** Makes room for this many more bytes. @throws code 8 when the message becomes too large */
function room(out: Output, more: number): void {
  const needed = out.at + more;
  if (needed <= out.bytes.length) return;
  if (out.at > out.bytesMax)
    throw refusalOf(Code.ResourceExhausted, 413, `the message is larger than ${out.bytesMax} bytes`);
  const bytes = Buffer.allocUnsafe(Math.max(needed, out.bytes.length * 2));
  out.bytes.copy(bytes, 0, 0, out.at);
  out.bytes = bytes;
  out.view = viewOf(bytes);
}

/** Writes a number from 0 to 2^32 - 1. */
export function writeVarint(out: Output, number: number): void {
  room(out, varintBytesMax);
  let left = number;
  for (; left > 127; left = Math.floor(left / 128)) out.bytes[out.at++] = (left % 128) + 128;
  out.bytes[out.at++] = left;
}

/** Writes an integer of at most 64 bits. */
export function writeInteger(out: Output, integer: bigint | number): void {
  if (integer >= 0 && integer < 2 ** 32) {
    writeVarint(out, Number(integer));
    return;
  }
  room(out, varintBytesMax);
  let left = BigInt.asUintN(64, BigInt(integer));
  for (; left > 127n; left >>= 7n) out.bytes[out.at++] = Number(left & 127n) + 128;
  out.bytes[out.at++] = Number(left);
}

function writeDouble(out: Output, number: number): void {
  room(out, 8);
  out.view.setFloat64(out.at, number, true);
  out.at += 8;
}

function writeFixed64(out: Output, integer: bigint): void {
  room(out, 8);
  out.view.setBigUint64(out.at, BigInt.asUintN(64, integer), true);
  out.at += 8;
}

function writeFixed32(out: Output, number: number): void {
  room(out, 4);
  out.view.setUint32(out.at, number, true);
  out.at += 4;
}

function writeBytes(out: Output, bytes: Uint8Array): void {
  writeVarint(out, bytes.length);
  room(out, bytes.length);
  out.bytes.set(bytes, out.at);
  out.at += bytes.length;
}

/** Writes values as readers of JSON make them, by their scalars; those without a line here are integers. */
export const writers: { readonly [K in ScalarType]?: (out: Output, value: never) => void } = {
  [ScalarType.BYTES]: writeBytes,
  [ScalarType.BOOL]: (out, value: boolean) => writeVarint(out, value ? 1 : 0),
  [ScalarType.DOUBLE]: writeDouble,
  [ScalarType.FIXED64]: writeFixed64,
  [ScalarType.SFIXED64]: writeFixed64,
  [ScalarType.FIXED32]: writeFixed32,
  [ScalarType.SINT32]: (out, number: number) => writeVarint(out, ((number << 1) ^ (number >> 31)) >>> 0),
};

/** Writes the string that begins here in a JSON text. */
export function writeString(out: Output, s: Scan): void {
  const { codes, bytes } = s;
  if (codes[s.at] !== 34) unexpected(s, "a string");
  const from = s.at + 1;
  let at = from;
  let c = codes[at] as number;
  while (c !== 34 && c !== 92 && c >= 32 && c < 128) c = codes[++at] as number;
  if (c !== 34) {
    // An escape, a character of several bytes, or what no string may hold.
    writeBytes(out, Buffer.from(string(s)));
    return;
  }
  s.at = at + 1;
  if (bytes !== undefined && at - from >= longText) {
    writeBytes(out, bytes.subarray(from, at));
    return;
  }
  writeVarint(out, at - from);
  room(out, at - from);
  for (let i = from; i < at; i += 1) out.bytes[out.at++] = codes[i] as number;
}

/** Begins a part whose length is known at its end, behind its tag; returns where that stands. */
export function beginLength(out: Output, tag: number): number {
  writeVarint(out, tag);
  room(out, 1);
  out.at += 1;
  return out.at - 1;
}

/** Ends such a part. */
export function endLength(out: Output, lengthAt: number): void {
  const length = out.at - lengthAt - 1;
  if (length < 128) {
    out.bytes[lengthAt] = length;
    return;
  }
  let more = 0;
  for (let left = length; left > 127; left = Math.floor(left / 128)) more += 1;
  room(out, more);
  out.bytes.copyWithin(lengthAt + 1 + more, lengthAt + 1, out.at);
  const { at } = out;
  out.at = lengthAt;
  writeVarint(out, length);
  out.at = at + more;
}
