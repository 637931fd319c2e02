import type { Pace } from "../../event-loop.ts";
import { Unreadable } from "./message-walk.ts";

const broken = () => new Unreadable("the body is no snappy block");

/** Three bytes copy at most 64: no block unpacks to more times its length. */
const growthMax = 22;

/** The length that a block unpacks to, as it declares it, and where its first element stands. @throws Unreadable */
export function declaredLength(block: Uint8Array): { length: number; at: number } {
  let length = 0;
  for (let at = 0; at < 5; at++) {
    const byte = block[at];
    if (byte === undefined) break;
    length += (byte & 127) * 128 ** at;
    if (byte < 128 && length < 2 ** 32) return { length, at: at + 1 };
  }
  throw broken();
}

/** A number of `bytes` bytes, the lowest first. */
function little(block: Uint8Array, at: number, bytes: number): number {
  let number = 0;
  for (let i = 0; i < bytes; i++) number += (block[at + i] as number) * 256 ** i;
  return number;
}

const sliceBytes = 64 * 1024;

/** Unpacks a block of the snappy format, in slices; its declared length is what it must come to. @throws Unreadable */
export async function unpackSnappy(block: Uint8Array, pace: Pace): Promise<Uint8Array> {
  const { length: total, at: start } = declaredLength(block);
  if (total > growthMax * block.length) throw broken();
  const out = Buffer.allocUnsafe(total);
  let at = start;
  let to = 0;
  let pausedAt = 0;
  while (at < block.length) {
    const tag = block[at] as number;
    const kind = tag & 3;
    at += 1;
    if (kind === 0) {
      const size = tag >>> 2;
      const more = size < 60 ? 0 : size - 59;
      if (at + more > block.length) throw broken();
      const length = (more === 0 ? size : little(block, at, more)) + 1;
      at += more;
      if (at + length > block.length || to + length > total) throw broken();
      out.set(block.subarray(at, at + length), to);
      at += length;
      to += length;
    } else {
      const bytes = kind === 3 ? 4 : kind;
      if (at + bytes > block.length) throw broken();
      const length = kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1;
      const back = little(block, at, bytes) + (kind === 1 ? (tag >>> 5) * 256 : 0);
      at += bytes;
      if (back === 0 || back > to || to + length > total) throw broken();
      // What is copied may be what has just been copied.
      for (let i = 0; i < length; i++) out[to + i] = out[to + i - back] as number;
      to += length;
    }
    if (to - pausedAt < sliceBytes) continue;
    pausedAt = to;
    const wait = pace();
    if (wait !== undefined) await wait;
  }
  if (to !== total) throw broken();
  return out;
}
