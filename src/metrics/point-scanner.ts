import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { MetricSchema, TaggedMetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { hashOf, piecesMax, seriesKey } from "./series-key.ts";

const varint = 0;
const fixed64 = 1;
const delimited = 2;

function tagOf({ fields, typeName }: DescMessage, name: string, wireType: number): number {
  const field = fields.find((each) => each.name === name);
  const tag = field === undefined ? 128 : (field.number << 3) | wireType;
  if (tag > 127) throw new Error(`${typeName}.${name} has no tag of one byte`);
  return tag;
}

const tags = {
  metric: tagOf(MetricSchema, "metric", delimited),
  timestamp: tagOf(MetricSchema, "timestamp", varint),
  value: tagOf(MetricSchema, "value", fixed64),
  dimensions: tagOf(MetricSchema, "dimensions", delimited),
  metadata: tagOf(MetricSchema, "metadata_fields", delimited),
};

/** The two bytes before labels: the field's number takes more than one. */
const labelsNumber = MetricSchema.fields.find(({ name }) => name === "labels")?.number ?? 0;
if (labelsNumber < 16 || labelsNumber > 2047)
  throw new Error(`${MetricSchema.typeName}.labels has no tag of two bytes`);
const labelsTag = { first: ((labelsNumber << 3) & 127) | delimited | 128, second: labelsNumber >> 4 };
// What is read of a point with tags is what is read of one with dimensions.
for (const [name, own] of [
  ["metric", "metric"],
  ["timestamp", "timestamp"],
  ["value", "value"],
  ["tags", "dimensions"],
] as const) {
  const field = TaggedMetricSchema.fields.find((each) => each.name === name);
  const same = MetricSchema.fields.find((each) => each.name === own);
  if (field?.number !== same?.number) throw new Error(`${TaggedMetricSchema.typeName}.${name} has another number`);
}
if (MetricSchema.fields.find(({ name }) => name === "value")?.scalar !== ScalarType.DOUBLE)
  throw new Error(`${MetricSchema.typeName}.value is no double`);

/** What `scanPoint` has found in the bytes of a point, beside its key. One object for all scans: none waits for another. */
export const scannedPoint = { metadata: false, labels: false, timeMs: 0, value: 0 };

/** Of the pieces of the key. */
const hashes = new Int32Array(piecesMax);

/** Adds a piece to the key, among the others in the order of their hashes: maps come in any order. */
function addPiece(bytes: Uint8Array, from: number, to: number): void {
  const hash = hashOf(bytes, from, to);
  seriesKey.hash = (seriesKey.hash + hash) | 0;
  let at = seriesKey.pieces++;
  for (; at > 0 && (hashes[at - 1] as number) > hash; at -= 1) {
    hashes[at] = hashes[at - 1] as number;
    seriesKey.starts[at] = seriesKey.starts[at - 1] as number;
    seriesKey.ends[at] = seriesKey.ends[at - 1] as number;
  }
  hashes[at] = hash;
  seriesKey.starts[at] = from;
  seriesKey.ends[at] = to;
}

/**
 * Scans the bytes of a Metric or TaggedMetric into `scannedPoint`, and sets `seriesKey` to all of its fields but time and value. Answers false for what is better decoded: unknown or repeated
 * fields, times that no point can have, values that are not finite, anything malformed.
 */
export function scanPoint(bytes: Uint8Array, view: DataView, from: number, to: number): boolean {
  seriesKey.bytes = bytes;
  seriesKey.pieces = 0;
  seriesKey.hash = 0;
  let timeMs = -1;
  let hasValue = false;
  scannedPoint.metadata = false;
  scannedPoint.labels = false;
  for (let at = from; at < to; ) {
    const tag = bytes[at] as number;
    const isLabel = tag === labelsTag.first && bytes[at + 1] === labelsTag.second;
    if (tag === tags.dimensions || tag === tags.metric || tag === tags.metadata || isLabel) {
      const lengthAt = isLabel ? at + 2 : at + 1;
      let end = lengthAt + 1;
      let length = bytes[lengthAt] as number;
      if (length > 127) {
        const more = bytes[lengthAt + 1] as number;
        if (more > 127) return false;
        length += (more - 1) * 128;
        end += 1;
      }
      end += length;
      if (!(end <= to) || seriesKey.pieces === piecesMax) return false;
      if (tag === tags.metadata) scannedPoint.metadata = true;
      else if (isLabel) scannedPoint.labels = true;
      addPiece(bytes, at, end);
      at = end;
    } else if (tag === tags.value) {
      if (hasValue || at + 9 > to) return false;
      hasValue = true;
      scannedPoint.value = view.getFloat64(at + 1, true);
      at += 9;
    } else if (tag === tags.timestamp) {
      if (timeMs >= 0) return false;
      timeMs = 0;
      at += 1;
      for (let factor = 1; ; factor *= 128) {
        // Seven groups of seven bits: until the year 19,000.
        if (at >= to || factor > 2 ** 42) return false;
        const byte = bytes[at] as number;
        at += 1;
        timeMs += (byte & 127) * factor;
        if (byte < 128) break;
      }
    } else return false;
  }
  scannedPoint.timeMs = timeMs;
  return hasValue && timeMs >= 0 && Number.isFinite(scannedPoint.value);
}

/** Returns where the text of a chunk begins that `scanPoint` has accepted, and where the chunk ends. */
function textBounds(bytes: Uint8Array, at: number): [from: number, to: number] {
  const lengthAt = bytes[at] === labelsTag.first ? at + 2 : at + 1;
  const length = bytes[lengthAt] as number;
  if (length < 128) return [lengthAt + 1, lengthAt + 1 + length];
  const from = lengthAt + 2;
  return [from, from + length - 128 + (bytes[lengthAt + 1] as number) * 128];
}

/** Returns the metric among pieces that `scanPoint` has accepted, each after the one before. */
export function metricIn(pieces: Buffer): string {
  for (let at = 0; at < pieces.byteLength; ) {
    const [from, to] = textBounds(pieces, at);
    if (pieces[at] === tags.metric) return pieces.toString("utf8", from, to);
    at = to;
  }
  return "";
}
