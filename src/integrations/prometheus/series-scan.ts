import { setKey } from "../../metrics/series-key.ts";
import { labelsMax } from "./series-walk.ts";

/** Holds what `scanSeries` has found beside the labels, which are the key: one object for all series, since they are many. */
export const scanned = { times: [] as number[], values: [] as number[] };

/** Samples that are scanned without a pause. */
const samplesMax = 10_000;
const tags = { label: 0x0a, sample: 0x12, value: 0x09, time: 0x10 };

/**
 * Scans a series of remote write 1.0 that has the usual form, a few labels and then samples, whose lengths take a byte each. False: it
 * is read in another way. What the labels hold is not looked at: bytes that are equal to good ones are good.
 */
export function scanSeries(bytes: Uint8Array, view: DataView, from: number, to: number): boolean {
  let at = from;
  for (let labels = 0; bytes[at] === tags.label && at < to; labels++) {
    const length = bytes[at + 1] as number;
    if (!(length < 128) || labels === labelsMax) return false;
    at += 2 + length;
  }
  if (at === from || at > to) return false;
  const labelsEnd = at;
  scanned.times.length = 0;
  scanned.values.length = 0;
  for (let end = at; at < to; at = end) {
    if (bytes[at] !== tags.sample || scanned.times.length === samplesMax) return false;
    end = at + 2 + (bytes[at + 1] as number);
    if (!(end - at < 130 && end <= to) || !scanSample(bytes, view, at + 2, end)) return false;
  }
  setKey(bytes, from, labelsEnd);
  return true;
}

function scanSample(bytes: Uint8Array, view: DataView, from: number, end: number): boolean {
  let at = from;
  let value = 0;
  if (bytes[at] === tags.value) {
    if (at + 9 > end) return false;
    value = view.getFloat64(at + 1, true);
    at += 9;
  }
  // Six bytes take us to the year 2109; more may be negative.
  if (bytes[at] !== tags.time || at + 1 >= end || end - at > 7) return false;
  let timeMs = 0;
  for (let i = end - 1; i > at; i--) {
    const byte = bytes[i] as number;
    if (byte < 128 !== (i === end - 1)) return false;
    timeMs = timeMs * 128 + (byte & 127);
  }
  scanned.times.push(timeMs);
  scanned.values.push(value);
  return true;
}
