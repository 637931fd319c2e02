import { DamagedBytes } from "./bits.ts";

/** Where whole numbers are read from, one after the other. */
export interface Bytes {
  readonly bytes: Uint8Array;
  /** Place of the next byte. */
  at: number;
}

const two32 = 2 ** 32;

/** Bytes that a whole number from 0 below 2⁵³ takes at most. */
export const VARINT_BYTES_MAX = 8;

/** Writes a whole number from 0, seven bits a byte, the lowest first; returns the place after it. */
export function writeVarint(into: Uint8Array, at: number, value: number): number {
  let place = at;
  let rest = value;
  while (rest >= two32) {
    into[place++] = (rest % 128) | 128;
    rest = Math.floor(rest / 128);
  }
  while (rest >= 128) {
    into[place++] = (rest & 127) | 128;
    rest >>>= 7;
  }
  into[place++] = rest;
  return place;
}

/** Reads what `writeVarint` wrote. @throws DamagedBytes where it ends too early, or is 2⁵³ or more */
export function readVarint(from: Bytes): number {
  let value = 0;
  let factor = 1;
  for (;;) {
    const byte = from.bytes[from.at];
    if (byte === undefined) throw new DamagedBytes("ends too early");
    from.at += 1;
    value += (byte & 127) * factor;
    if (byte < 128) break;
    factor *= 128;
    if (factor > 2 ** 49) throw new DamagedBytes("a number is too large");
  }
  if (value > Number.MAX_SAFE_INTEGER) throw new DamagedBytes("a number is too large");
  return value;
}

/** A whole number of either sign as one from 0: 0, -1, 1, -2 … become 0, 1, 2, 3 … */
export const zigzag = (value: number) => (value < 0 ? -2 * value - 1 : 2 * value);

/** What `zigzag` was given. */
export const unzigzag = (value: number) => (value % 2 === 0 ? value / 2 : -(value + 1) / 2);
