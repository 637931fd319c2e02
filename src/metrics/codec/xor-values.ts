import { type BitReader, bitWriter, DamagedBytes, readBits, readWide } from "./bits.ts";

// Numbers of 64 bits as two halves of 32, since whole numbers are exact to 53 bits only.

/** Zeros in front of and behind what differs from the value before. */
interface Window {
  leading: number;
  width: number;
}

/**
 * Each value as what differs from the one before, bit by bit, as in Facebook's Gorilla (VLDB 2015). Undefined when that
 * takes more than `bytesMax` bytes.
 */
export function writeXor(values: Float64Array, bytesMax = Infinity): Uint8Array | undefined {
  const bits = bitWriter(8 + values.length * 8);
  const halves = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
  let window: Window = { leading: 65, width: 0 };
  let lastLow = 0;
  let lastHigh = 0;
  for (let i = 0; i < values.length; i++) {
    if (bits.bytes() > bytesMax) return undefined;
    const low = halves[2 * i] as number;
    const high = halves[2 * i + 1] as number;
    const xorLow = (low ^ lastLow) >>> 0;
    const xorHigh = (high ^ lastHigh) >>> 0;
    lastLow = low;
    lastHigh = high;
    if (xorLow === 0 && xorHigh === 0) {
      bits.write(0, 1);
      continue;
    }
    const leading = xorHigh === 0 ? 32 + Math.clz32(xorLow) : Math.clz32(xorHigh);
    const trailing = xorLow === 0 ? 32 + trailingZeros(xorHigh) : trailingZeros(xorLow);
    const width = 64 - leading - trailing;
    // A new window costs 12 bits: one that is wider than needed by less than that stays.
    if (leading >= window.leading && trailing >= 64 - window.leading - window.width && window.width < width + 12) {
      bits.write(0b10, 2);
    } else {
      window = { leading, width };
      bits.write(0b11, 2);
      bits.write(leading, 6);
      bits.write(width - 1, 6);
    }
    writeWindow(bits.write, xorHigh, xorLow, window);
  }
  return bits.finish();
}

const trailingZeros = (half: number) => 31 - Math.clz32(half & -half);

function writeWindow(
  write: (value: number, width: number) => void,
  high: number,
  low: number,
  { leading, width }: Window,
) {
  const trailing = 64 - leading - width;
  const ofHigh = Math.max(0, 32 - leading) - Math.max(0, trailing - 32);
  if (ofHigh > 0) write(high >>> Math.max(0, trailing - 32), ofHigh);
  if (width > ofHigh) write(low >>> trailing, width - ofHigh);
}

/** Reads what `writeXor` wrote into `values`, which reports how many there are. @throws DamagedBytes */
export function readXor(bits: BitReader, values: Float64Array): void {
  const halves = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
  let leading = 0;
  let width = 0;
  let low = 0;
  let high = 0;
  for (let i = 0; i < values.length; i++) {
    if (readBits(bits, 1) === 1) {
      if (readBits(bits, 1) === 1) {
        leading = readBits(bits, 6);
        width = readBits(bits, 6) + 1;
      }
      const trailing = 64 - leading - width;
      if (width === 0 || trailing < 0) throw new DamagedBytes("has bits outside of a value");
      const ofHigh = Math.max(0, 32 - leading) - Math.max(0, trailing - 32);
      if (ofHigh > 0) high = (high ^ (readWide(bits, ofHigh) << Math.max(0, trailing - 32))) >>> 0;
      if (width > ofHigh) low = (low ^ (readWide(bits, width - Math.max(0, ofHigh)) << trailing)) >>> 0;
    }
    halves[2 * i] = low;
    halves[2 * i + 1] = high;
    if ((high & 0x7ff0_0000) >>> 0 === 0x7ff0_0000) throw new DamagedBytes("has a value that is not finite");
  }
}
