import { type BitReader, bitReader, bitWriter, DamagedBytes, readBits, readWide } from "./bits.ts";
import { readScaled, scaled, writeScaled } from "./scaled-values.ts";
import { readVarint, unzigzag, VARINT_BYTES_MAX, writeVarint, zigzag } from "./varint.ts";
import { readXor, writeXor } from "./xor-values.ts";

// The bytes are a stored format: docs/formats/chunk.md.
const VERSION = 1;
const REGULAR = 1;
const XOR = 2;

/** Points of one series in the order of their times, which differ. */
export interface Points {
  /** Whole ms since the epoch, at most 2⁵⁰ away from it. */
  times: Float64Array;
  /** Finite numbers. */
  values: Float64Array;
}

/** Points that one chunk may hold. */
export const CHUNK_POINTS_MAX = 65_536;

/** Where `steps` of the times are written: how many bits give the width, and that width. */
const stepWidths = [7, 9, 12, 20, 32, 53] as const;

/** The points as a chunk: the bytes that docs/formats/chunk.md describes. There is at least one, at most `CHUNK_POINTS_MAX`. */
export function encodeChunk({ times, values }: Points): Uint8Array {
  const steps = isRegular(times) ? undefined : writeSteps(times);
  const [kind, body] = smaller(values);
  const head = new Uint8Array(2 + 4 * VARINT_BYTES_MAX);
  head[0] = VERSION;
  head[1] = (steps === undefined ? REGULAR : 0) | kind;
  let at = writeVarint(head, 2, times.length);
  at = writeVarint(head, at, zigzag(times[0] as number));
  if (times.length > 1) at = writeVarint(head, at, (times[1] as number) - (times[0] as number));
  if (steps !== undefined) at = writeVarint(head, at, steps.length);
  const chunk = new Uint8Array(at + (steps?.length ?? 0) + body.length);
  chunk.set(head.subarray(0, at));
  if (steps !== undefined) chunk.set(steps, at);
  chunk.set(body, at + (steps?.length ?? 0));
  return chunk;
}

/** Reads what `encodeChunk` wrote. @throws DamagedBytes for anything else, without taking more memory than a chunk may need */
export function decodeChunk(bytes: Uint8Array): Points {
  const from = { bytes, at: 2 };
  const flags = bytes[1] ?? 0;
  if (bytes[0] !== VERSION) throw new DamagedBytes(`is no chunk of version ${VERSION}`);
  if (flags > (REGULAR | XOR)) throw new DamagedBytes("has unknown flags");
  const count = readVarint(from);
  if (count === 0 || count > CHUNK_POINTS_MAX) throw new DamagedBytes("has a wrong number of points");
  const times = new Float64Array(count);
  times[0] = unzigzag(readVarint(from));
  const step = count > 1 ? readVarint(from) : 0;
  if ((flags & REGULAR) !== 0) repeatStep(times, step);
  else {
    const length = readVarint(from);
    if (length > bytes.length - from.at) throw new DamagedBytes("ends too early");
    readSteps(bitReader(bytes.subarray(from.at, from.at + length)), times, step);
    from.at += length;
  }
  if (count > 1 && !(step > 0)) throw new DamagedBytes("has times out of order");
  if (!Number.isSafeInteger(times[count - 1])) throw new DamagedBytes("has a time that is too late");
  const values = new Float64Array(count);
  const bits = bitReader(bytes.subarray(from.at));
  if ((flags & XOR) !== 0) readXor(bits, values);
  else readScaled(bits, values);
  if (bits.end - bits.at >= 8) throw new DamagedBytes("goes on behind its last value");
  return { times, values };
}

/** The values in the form that takes fewer bytes, and the flag that says it. */
function smaller(values: Float64Array): [number, Uint8Array] {
  const fitting = scaled(values);
  const packed = fitting && writeScaled(fitting);
  const xor = writeXor(values, packed && packed.length - 1);
  return xor === undefined ? [0, packed as Uint8Array] : [XOR, xor];
}

function isRegular(times: Float64Array): boolean {
  if (times.length < 3) return true;
  const step = (times[1] as number) - (times[0] as number);
  for (let i = 2; i < times.length; i++) {
    if ((times[i] as number) - (times[i - 1] as number) !== step) return false;
  }
  return true;
}

function repeatStep(times: Float64Array, step: number) {
  const first = times[0] as number;
  for (let i = 1; i < times.length; i++) times[i] = first + i * step;
}

/** How each step differs from the one before, a bit where it does not. */
function writeSteps(times: Float64Array): Uint8Array {
  const bits = bitWriter(times.length);
  let last = (times[1] as number) - (times[0] as number);
  for (let i = 2; i < times.length; i++) {
    const step = (times[i] as number) - (times[i - 1] as number);
    const change = zigzag(step - last);
    last = step;
    if (change === 0) {
      bits.write(0, 1);
      continue;
    }
    let kind = 0;
    while (change >= 2 ** (stepWidths[kind] as number)) kind += 1;
    // As many ones as the kind says, then a zero, but after the last kind.
    if (kind < stepWidths.length - 1) bits.write(2 ** (kind + 2) - 2, kind + 2);
    else bits.write(2 ** (kind + 1) - 1, kind + 1);
    bits.write(change, stepWidths[kind] as number);
  }
  return bits.finish();
}

function readSteps(bits: BitReader, times: Float64Array, firstStep: number) {
  let step = firstStep;
  let time = times[0] as number;
  for (let i = 1; i < times.length; i++) {
    if (i > 1 && readBits(bits, 1) === 1) {
      let kind = 0;
      while (kind < stepWidths.length - 1 && readBits(bits, 1) === 1) kind += 1;
      step += unzigzag(readWide(bits, stepWidths[kind] as number));
      if (!(step > 0)) throw new DamagedBytes("has times out of order");
    }
    time += step;
    times[i] = time;
  }
}
