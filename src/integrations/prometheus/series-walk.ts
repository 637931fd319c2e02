import type { BinaryReader } from "@bufbuild/protobuf/wire";
import { HistogramSchema, SampleSchema } from "#gen/io/prometheus/write/v2/request_pb.ts";
import {
  checkEnd,
  fieldsMax,
  nextTag,
  type Shape,
  shapeOf,
  skip,
  tooManyFields,
  Unreadable,
  valueEnd,
} from "./message-walk.ts";

/** A series of a remote write request: one object serves all of a request, which may name millions of empty ones. */
export interface WrittenSeries {
  /** The place of its length in the request. */
  at: number;
  end: number;
  /** The bound that it exceeds; what follows in it is not read. */
  broken: string | undefined;
  /** How many labels it has; in version 2 they are not counted. */
  labels: number;
  /** In version 1 where its labels lie, begin and end of each run of them; in version 2 the symbols of names and values in turn. */
  readonly places: number[];
  readonly times: number[];
  readonly values: number[];
  /** Native histograms: when, how many values, and their sum. */
  readonly histograms: { timeMs: number; count: number; sum: number }[];
  /** In version 2 where its metadata lie. */
  metadata: { from: number; to: number } | undefined;
  /** Fields of which nothing is made. */
  others: number;
}

/** What the series of a version have where. */
export interface SeriesForm {
  readonly shape: Shape;
  /** The numbers of its fields. */
  readonly labels: number;
  readonly samples: number;
  readonly histograms: number;
  /** Undefined: it has none. */
  readonly metadata: number | undefined;
  /** Reads a label, or those that are packed; returns the bound that is exceeded. @param at where its tag stands */
  readLabel(reader: BinaryReader, series: WrittenSeries, type: number, at: number): string | undefined;
}

/** Labels of a written series: its name, those of its entity, and its own. */
export const labelsMax = 1 + 64 + 64;
/** How much a series may hold where bytes are no bound: of empty points each takes two of them. */
const pointsMax = 100_000;
const listMax = 1000;
const othersMax = 1000;
/** Work pauses each time that this many bytes are read, which hold at most 10,000 fields. */
export const pieceBytes = 20_000;

export const tooManyLabels = `a series may have at most ${labelsMax} labels`;

// Those of version 2 have a field more, which version 1 has in no other meaning.
const sampleShape = shapeOf(SampleSchema);
const histogramShape = shapeOf(HistogramSchema);
/** Elements of the histogram that is being read, by the field of their list. */
const counts = new Uint16Array(histogramShape.lists.length);
const { value, timestamp } = SampleSchema.field;
const sampleFields = { value: value.number, timestamp: timestamp.number };
const histogramFields = {
  countInt: HistogramSchema.field.countInt.number,
  countFloat: HistogramSchema.field.countFloat.number,
  sum: HistogramSchema.field.sum.number,
  timestamp: HistogramSchema.field.timestamp.number,
};

/** An empty series. */
export function newSeries(): WrittenSeries {
  const lists = { places: [], times: [], values: [], histograms: [] };
  return { at: 0, end: 0, broken: undefined, labels: 0, ...lists, metadata: undefined, others: 0 };
}

/** Begins a series; its length comes next. */
export function beginSeries(reader: BinaryReader, series: WrittenSeries): void {
  series.at = reader.pos;
  series.end = valueEnd(reader, reader.len);
  series.broken = undefined;
  series.labels = 0;
  series.places.length = 0;
  series.times.length = 0;
  series.values.length = 0;
  series.histograms.length = 0;
  series.metadata = undefined;
  series.others = 0;
}

/** Reads on in a series until its end, or over a piece of it; returns whether it is at its end. @throws Unreadable */
export function readOn(reader: BinaryReader, form: SeriesForm, series: WrittenSeries): boolean {
  const { end } = series;
  const pauseAt = reader.pos + pieceBytes;
  while (reader.pos < end) {
    if (reader.pos > pauseAt) return false;
    const at = reader.pos;
    const tag = nextTag(reader, form.shape);
    series.broken = readField(reader, form, series, tag, at);
    if (series.broken !== undefined) reader.pos = end;
  }
  checkEnd(reader, end);
  return true;
}

function readField(
  reader: BinaryReader,
  form: SeriesForm,
  series: WrittenSeries,
  tag: number,
  at: number,
): string | undefined {
  const field = tag >>> 3;
  if (field === form.labels) return form.readLabel(reader, series, tag & 7, at);
  if (field === form.samples || field === form.histograms) {
    if (series.times.length + series.histograms.length === pointsMax)
      return `a series may have at most ${pointsMax} points`;
    const end = valueEnd(reader, series.end);
    return field === form.samples ? readSample(reader, end, series) : readHistogram(reader, end, series);
  }
  series.others += 1;
  if (series.others > othersMax) return `a series may have at most ${othersMax} fields beside its labels and points`;
  if (field !== form.metadata) skip(reader, tag & 7);
  else {
    const to = valueEnd(reader, series.end);
    series.metadata = { from: reader.pos, to };
    reader.pos = to;
  }
  return undefined;
}

const int64 = (reader: BinaryReader) => Number(reader.int64());

function readSample(reader: BinaryReader, end: number, series: WrittenSeries): string | undefined {
  let [number, timeMs] = [0, 0];
  for (let fields = 0; reader.pos < end; fields++) {
    if (fields === fieldsMax) return tooManyFields;
    const tag = nextTag(reader, sampleShape);
    const field = tag >>> 3;
    if (field === sampleFields.value) number = reader.double();
    else if (field === sampleFields.timestamp) timeMs = int64(reader);
    else skip(reader, tag & 7);
  }
  checkEnd(reader, end);
  series.times.push(timeMs);
  series.values.push(number);
  return undefined;
}

function readHistogram(reader: BinaryReader, end: number, series: WrittenSeries): string | undefined {
  const read = { timeMs: 0, count: 0, sum: 0 };
  const { lists, types } = histogramShape;
  counts.fill(0);
  let fields = 0;
  while (reader.pos < end) {
    const tag = nextTag(reader, histogramShape);
    const field = tag >>> 3;
    if (lists[field] === 1) {
      const count = (counts[field] as number) + elements(reader, end, tag & 7, types[field] as number);
      if (count > listMax) return `a histogram may have at most ${listMax} spans, deltas, counts or bounds of a kind`;
      counts[field] = count;
      continue;
    }
    if (fields === fieldsMax) return tooManyFields;
    fields += 1;
    if (field === histogramFields.countInt) read.count = Number(reader.uint64());
    else if (field === histogramFields.countFloat) read.count = reader.double();
    else if (field === histogramFields.sum) read.sum = reader.double();
    else if (field === histogramFields.timestamp) read.timeMs = int64(reader);
    else skip(reader, tag & 7);
  }
  checkEnd(reader, end);
  series.histograms.push(read);
  return undefined;
}

/** Passes over an element of a list, or over those that are packed; returns how many they are, at most one more than a list may have. */
function elements(reader: BinaryReader, end: number, type: number, elementType: number): number {
  if (type === elementType) {
    skip(reader, type);
    return 1;
  }
  const to = valueEnd(reader, end);
  let count = 0;
  for (; reader.pos < to && count <= listMax; count++) skip(reader, elementType);
  if (reader.pos > to) throw new Unreadable("the message ends within a field");
  reader.pos = to;
  return count;
}
