import { DamagedBytes } from "./bits.ts";
import { readVarint, unzigzag, VARINT_BYTES_MAX, writeVarint, zigzag } from "./varint.ts";

// The bytes are a stored format: docs/formats/head-block.md.
const VERSION = 1;

/** Points of several series, as they were sent: those of one series stand together, in the order of their arrival. */
export interface HeadPoints {
  /** Numbers of the series, ascending. */
  series: Float64Array;
  /** How many points each of them has. */
  counts: Uint32Array;
  /** Whole ms since the epoch. */
  times: Float64Array;
  /** Finite numbers. */
  values: Float64Array;
}

/** The points as a block: the bytes that docs/formats/head-block.md describes. */
export function encodeHeadBlock({ series, counts, times, values }: HeadPoints): Uint8Array {
  const bytes = new Uint8Array(1 + VARINT_BYTES_MAX * (2 + 2 * series.length + times.length) + 8 * values.length);
  bytes[0] = VERSION;
  let at = writeVarint(bytes, 1, series.length);
  at = writeVarint(bytes, at, times.length);
  let before = 0;
  for (let i = 0; i < series.length; i++) {
    const number = series[i] as number;
    at = writeVarint(bytes, at, number - before);
    at = writeVarint(bytes, at, counts[i] as number);
    before = number;
  }
  let last = 0;
  for (let i = 0; i < times.length; i++) {
    const time = times[i] as number;
    at = writeVarint(bytes, at, zigzag(time - last));
    last = time;
  }
  const floats = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  bytes.set(floats, at);
  return bytes.subarray(0, at + floats.length);
}

/** Reads what `encodeHeadBlock` wrote. @throws DamagedBytes for anything else, without taking more memory than `bytes` warrants */
export function decodeHeadBlock(bytes: Uint8Array): HeadPoints {
  const from = { bytes, at: 1 };
  if (bytes[0] !== VERSION) throw new DamagedBytes(`is no head block of version ${VERSION}`);
  const seriesCount = readVarint(from);
  const count = readVarint(from);
  // A series takes two bytes or more, a point nine.
  if (2 * seriesCount + 9 * count > bytes.length - from.at) throw new DamagedBytes("ends too early");
  const series = new Float64Array(seriesCount);
  const counts = new Uint32Array(seriesCount);
  let number = 0;
  let told = 0;
  for (let i = 0; i < seriesCount; i++) {
    number += readVarint(from);
    series[i] = number;
    const own = readVarint(from);
    counts[i] = own;
    told += own;
  }
  if (told !== count) throw new DamagedBytes("has a wrong number of points");
  const times = new Float64Array(count);
  let time = 0;
  for (let i = 0; i < count; i++) {
    time += unzigzag(readVarint(from));
    times[i] = time;
  }
  if (bytes.length - from.at !== 8 * count) throw new DamagedBytes("has values of a wrong length");
  const values = new Float64Array(count);
  new Uint8Array(values.buffer).set(bytes.subarray(from.at));
  for (let i = 0; i < count; i++) {
    if (!Number.isFinite(values[i]) || !Number.isSafeInteger(times[i])) {
      throw new DamagedBytes("has a point that is none");
    }
  }
  return { series, counts, times, values };
}

/** The points of one series in a block, in the order of their arrival; undefined: it has none. */
export function ofSeries(
  { series, counts, times, values }: HeadPoints,
  number: number,
): { times: Float64Array; values: Float64Array } | undefined {
  let from = 0;
  for (let i = 0; i < series.length; i++) {
    const to = from + (counts[i] as number);
    if (series[i] === number) return { times: times.subarray(from, to), values: values.subarray(from, to) };
    from = to;
  }
  return undefined;
}
