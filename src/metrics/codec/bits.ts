/** Bits one after the other, the most significant of each value first, into bytes that grow. */
export interface BitWriter {
  /** Appends the lowest `width` bits of `value`, a whole number from 0; `width` is 0 to 53. */
  write(value: number, width: number): void;
  /** Whole bytes written so far. */
  bytes(): number;
  /** Appends zero bits up to the next byte; returns the bytes written so far, which further writes may move. */
  finish(): Uint8Array;
}

/** Where bits are read from: a copy with room after it, so that a read never leaves the array. */
export interface BitReader {
  readonly bytes: Uint8Array;
  /** Place of the next bit. */
  at: number;
  /** Place after the last bit. */
  readonly end: number;
}

/** Bytes that do not hold what they should. */
export class DamagedBytes extends Error {
  override name = "DamagedBytes";
}

const room = 8;
const two32 = 2 ** 32;

/** Begins to write bits. `bytes` is a first guess of how many it will take. */
export function bitWriter(bytes = 256): BitWriter {
  let buffer = new Uint8Array(bytes + room);
  let at = 0; // bits

  function put(value: number, width: number) {
    // Up to 25 bits, which with the seven before them fill four bytes.
    const place = at >>> 3;
    const word = (value << (32 - width - (at & 7))) >>> 0;
    buffer[place] = (buffer[place] as number) | (word >>> 24);
    buffer[place + 1] = word >>> 16;
    buffer[place + 2] = word >>> 8;
    buffer[place + 3] = word;
    at += width;
  }

  return {
    write(value, width) {
      if ((at >>> 3) + room >= buffer.length) {
        const larger = new Uint8Array(buffer.length * 2);
        larger.set(buffer);
        buffer = larger;
      }
      if (width === 0) return;
      if (width <= 25) return put(value, width);
      const low = (value % two32) >>> 0;
      const high = (value - low) / two32;
      if (width > 32) put(high, width - 32);
      const top = Math.min(width, 32) - 16;
      put(low >>> 16, top);
      put(low & 0xffff, 16);
    },
    bytes: () => at >>> 3,
    finish() {
      at = (at + 7) & ~7;
      return buffer.subarray(0, at >>> 3);
    },
  };
}

/** Begins to read the bits of `bytes`. */
export function bitReader(bytes: Uint8Array): BitReader {
  const copy = new Uint8Array(bytes.length + room);
  copy.set(bytes);
  return { bytes: copy, at: 0, end: bytes.length * 8 };
}

/** The next `width` bits, 0 to 25, as a whole number from 0. @throws DamagedBytes after the end */
export function readBits(from: BitReader, width: number): number {
  const { bytes, at } = from;
  if (at + width > from.end) throw new DamagedBytes("ends too early");
  if (width === 0) return 0;
  const place = at >>> 3;
  const word =
    ((bytes[place] as number) << 24) |
    ((bytes[place + 1] as number) << 16) |
    ((bytes[place + 2] as number) << 8) |
    (bytes[place + 3] as number);
  from.at = at + width;
  return (word << (at & 7)) >>> (32 - width);
}

/** The same for up to 53 bits. */
export function readWide(from: BitReader, width: number): number {
  if (width <= 25) return readBits(from, width);
  if (width <= 32) return readBits(from, width - 16) * 0x1_0000 + readBits(from, 16);
  const high = readBits(from, width - 32);
  return high * two32 + readBits(from, 16) * 0x1_0000 + readBits(from, 16);
}
