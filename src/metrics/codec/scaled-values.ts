import { type BitReader, bitWriter, DamagedBytes, readBits, readWide } from "./bits.ts";
import { unzigzag, zigzag } from "./varint.ts";

/** Values as whole numbers times a power of ten. */
export interface Scaled {
  /** Digits after the decimal point. */
  digits: number;
  /** The values times 10 to the power of `digits`. */
  numbers: Float64Array;
}

const BLOCK = 128;
const DIGITS_MAX = 15;
// So that differences, and how far one is above another, are exact, too.
const NUMBER_MAX = 2 ** 50;
const WIDTH_MAX = 53;
const powers = Float64Array.from({ length: DIGITS_MAX + 1 }, (_, digits) => Number(`1e${digits}`));

/** The values as whole numbers, when each of them is exactly one divided by the same power of ten; undefined: they are not. */
export function scaled(values: Float64Array): Scaled | undefined {
  let digits = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    while (!fits(value, powers[digits] as number)) {
      digits += 1;
      if (digits > DIGITS_MAX) return undefined;
    }
  }
  const power = powers[digits] as number;
  const numbers = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) {
    numbers[i] = Math.round((values[i] as number) * power);
    // One that fits with fewer digits need not fit with more.
    if (!fits(values[i] as number, power)) return undefined;
  }
  return { digits, numbers };
}

function fits(value: number, power: number): boolean {
  const number = Math.round(value * power);
  // A whole number has no -0.
  return Math.abs(number) <= NUMBER_MAX && number / power === value && (value !== 0 || Object.is(value, 0));
}

/** How the numbers of one block are written: as they are, or as differences from the one before. */
interface Packing {
  differences: boolean;
  base: number;
  width: number;
}

/** The numbers as bytes, in blocks of 128: the lowest of each, and how far the others are above it. */
export function writeScaled({ digits, numbers }: Scaled): Uint8Array {
  const bits = bitWriter(16 + numbers.length * 2);
  bits.write(digits, 8);
  for (let from = 0; from < numbers.length; from += BLOCK) {
    const to = Math.min(from + BLOCK, numbers.length);
    const { differences, base, width } = packing(numbers, from, to);
    bits.write((differences ? 64 : 0) | width, 7);
    const lowest = zigzag(base);
    const lowestWidth = widthOf(lowest);
    bits.write(lowestWidth, 6);
    bits.write(lowest, lowestWidth);
    let last = numberBefore(numbers, from);
    for (let i = from; i < to; i++) {
      const number = numbers[i] as number;
      bits.write(number - (differences ? last : 0) - base, width);
      last = number;
    }
  }
  return bits.finish();
}

const numberBefore = (numbers: Float64Array, at: number) => (at === 0 ? 0 : (numbers[at - 1] as number));

function packing(numbers: Float64Array, from: number, to: number): Packing {
  let low = Infinity;
  let high = -Infinity;
  let lowStep = Infinity;
  let highStep = -Infinity;
  let last = numberBefore(numbers, from);
  for (let i = from; i < to; i++) {
    const number = numbers[i] as number;
    const step = number - last;
    if (number < low) low = number;
    if (number > high) high = number;
    if (step < lowStep) lowStep = step;
    if (step > highStep) highStep = step;
    last = number;
  }
  const width = widthOf(high - low);
  const stepWidth = widthOf(highStep - lowStep);
  return stepWidth < width
    ? { differences: true, base: lowStep, width: stepWidth }
    : { differences: false, base: low, width };
}

/** Bits of a whole number from 0. */
function widthOf(number: number): number {
  return number < 2 ** 31 ? 32 - Math.clz32(number) : 32 + widthOf(Math.floor(number / 2 ** 32));
}

/** Reads what `writeScaled` wrote into `values`, which reports how many there are. @throws DamagedBytes */
export function readScaled(bits: BitReader, values: Float64Array): void {
  const digits = readBits(bits, 8);
  if (digits > DIGITS_MAX) throw new DamagedBytes("has too many digits");
  const power = powers[digits] as number;
  let last = 0;
  for (let from = 0; from < values.length; from += BLOCK) {
    const to = Math.min(from + BLOCK, values.length);
    const kind = readBits(bits, 7);
    const width = kind & 63;
    const lowestWidth = readBits(bits, 6);
    if (width > WIDTH_MAX || lowestWidth > WIDTH_MAX) throw new DamagedBytes("has too wide a block");
    const base = unzigzag(readWide(bits, lowestWidth));
    if (bits.at + width * (to - from) > bits.end) throw new DamagedBytes("ends too early");
    last =
      kind >= 64
        ? readSteps(bits, values, from, to, base, width, last)
        : readPlain(bits, values, from, to, base, width);
    if (!(Math.abs(last) <= Number.MAX_SAFE_INTEGER)) throw new DamagedBytes("has a value that is too large");
  }
  if (digits > 0) for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) / power;
}

function readPlain(bits: BitReader, values: Float64Array, from: number, to: number, base: number, width: number) {
  unpack(bits, values, from, to, width);
  for (let i = from; i < to; i++) values[i] = (values[i] as number) + base;
  return values[to - 1] as number;
}

function readSteps(
  bits: BitReader,
  values: Float64Array,
  from: number,
  to: number,
  base: number,
  width: number,
  before: number,
) {
  unpack(bits, values, from, to, width);
  let last = before;
  for (let i = from; i < to; i++) {
    last += (values[i] as number) + base;
    values[i] = last;
  }
  return last;
}

/** Reads numbers of one width; the caller has seen that they are there. */
function unpack(bits: BitReader, into: Float64Array, from: number, to: number, width: number) {
  if (width === 0) return;
  if (width > 25) {
    for (let i = from; i < to; i++) into[i] = readWide(bits, width);
    return;
  }
  const { bytes } = bits;
  const shift = 32 - width;
  let at = bits.at;
  for (let i = from; i < to; i++) {
    const place = at >>> 3;
    const word =
      ((bytes[place] as number) << 24) |
      ((bytes[place + 1] as number) << 16) |
      ((bytes[place + 2] as number) << 8) |
      (bytes[place + 3] as number);
    into[i] = (word << (at & 7)) >>> shift;
    at += width;
  }
  bits.at = at;
}
