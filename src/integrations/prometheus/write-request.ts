import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ConnectError } from "@connectrpc/connect";

/** A series of a remote write request, read one at a time: a request may name millions of empty ones. */
export interface WrittenSeries {
  /** What names it: equal keys mean equal labels. */
  key: string;
  /** Names and values in turn, as they came; read when they are asked for. @throws Unreadable */
  labels(): string[];
  times: number[];
  values: number[];
  /** Native histograms: when, how many values, and their sum. */
  histograms: { timeMs: number; count: number; sum: number }[];
  /** How many there are; nothing is made of them. */
  exemplars: number;
  /** Of remote write 2.0. */
  metadata?: { type: number; help: string; unit: string };
}

/** What Prometheus 1.0 says of a metric family, in a request of its own. */
export interface WrittenMetadata {
  family: string;
  /** The number of its type, the same in both versions. */
  type: number;
  help: string;
  unit: string;
}

/** How much a request may hold where bytes are no bound: of empty labels, points and symbols each takes two of them. */
export const labelsMax = 128;
const pointsMax = 100_000;
const symbolsMax = 1_000_000;

/** A request that cannot be read. */
export class Unreadable extends Error {}

/** Whatever a reader of Protobuf throws says that its bytes cannot be read, but for refusals. @throws Unreadable */
export function orUnreadable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Unreadable || error instanceof ConnectError
      ? error
      : new Unreadable("its Protobuf is broken");
  }
}

const latin1 = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString("latin1");

const number = (value: bigint | number | string) => Number(value);

/** Walks over the fields of a message; `read` returns false for those that it leaves. */
function walk(reader: BinaryReader, length: number, read: (field: number, wireType: WireType) => boolean): void {
  const end = reader.pos + length;
  if (end > reader.len) throw new Unreadable("the message ends within a field");
  while (reader.pos < end) {
    const [field, wireType] = reader.tag();
    if (!read(field, wireType)) reader.skip(wireType, field);
  }
  if (reader.pos !== end) throw new Unreadable("the message ends within a field");
}

function readSample(reader: BinaryReader, series: WrittenSeries): void {
  let [value, timeMs] = [0, 0];
  walk(reader, reader.uint32(), (field, type) => {
    if (field === 1 && type === WireType.Bit64) value = reader.double();
    else if (field === 2 && type === WireType.Varint) timeMs = number(reader.int64());
    else return false;
    return true;
  });
  checkPoints(series);
  series.times.push(timeMs);
  series.values.push(value);
}

/** The same in both versions. */
function readHistogram(reader: BinaryReader, series: WrittenSeries): void {
  const read = { timeMs: 0, count: 0, sum: 0 };
  walk(reader, reader.uint32(), (field, type) => {
    if (field === 1 && type === WireType.Varint) read.count = number(reader.uint64());
    else if (field === 2 && type === WireType.Bit64) read.count = reader.double();
    else if (field === 3 && type === WireType.Bit64) read.sum = reader.double();
    else if (field === 15 && type === WireType.Varint) read.timeMs = number(reader.int64());
    else return false;
    return true;
  });
  checkPoints(series);
  series.histograms.push(read);
}

function checkPoints({ times, histograms }: WrittenSeries): void {
  if (times.length + histograms.length >= pointsMax)
    throw new Unreadable(`a series may have at most ${pointsMax} points`);
}

const empty = (): WrittenSeries => ({
  key: "",
  labels: () => [],
  times: [],
  values: [],
  histograms: [],
  exemplars: 0,
});

const tooManyLabels = () => new Unreadable(`a series may have at most ${labelsMax} labels`);

/** Texts with their lengths: lists that differ have keys that differ. */
const keyOf = (texts: readonly string[]) => `t${texts.map((text) => `${text.length}:${text}`).join("")}`;

/**
 * A `prometheus.WriteRequest`: its series and its metadata, in their order.
 * @param take takes a series that lies between two places, or answers false; undefined comes now and then instead of what it has taken
 * @throws Unreadable
 */
export function* readVersion1(
  bytes: Uint8Array,
  take: (from: number, to: number) => boolean = () => false,
): Generator<WrittenSeries | WrittenMetadata | undefined> {
  const reader = new BinaryReader(bytes);
  let taken = 0;
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType !== WireType.LengthDelimited || (field !== 1 && field !== 3)) reader.skip(wireType, field);
    else if (field === 1) {
      const before = reader.pos;
      const length = reader.uint32();
      const end = reader.pos + length;
      if (end <= reader.len && take(reader.pos, end)) {
        reader.pos = end;
        taken += 1;
        if (taken % 64 === 0) yield undefined;
        continue;
      }
      reader.pos = before;
      yield seriesOfVersion1(reader, bytes);
    } else {
      const metadata = { family: "", type: 0, help: "", unit: "" };
      walk(reader, reader.uint32(), (member, type) => {
        if (member === 1 && type === WireType.Varint) {
          metadata.type = reader.int32();
          return true;
        }
        const name =
          type === WireType.LengthDelimited ? ({ 2: "family", 4: "help", 5: "unit" } as const)[member] : undefined;
        if (name !== undefined) metadata[name] = reader.string();
        return name !== undefined;
      });
      yield metadata;
    }
  }
}

/** Where labels that follow each other lie: from the length of the first to the end of the last. */
type Run = [from: number, to: number];

/** The series between two places, which does not include its length. */
export function seriesAt(bytes: Uint8Array, from: number, to: number): WrittenSeries {
  const length = new BinaryWriter().uint32(to - from).finish();
  const alone = Buffer.concat([length, bytes.subarray(from, to)]);
  return seriesOfVersion1(new BinaryReader(alone), alone);
}

function seriesOfVersion1(reader: BinaryReader, bytes: Uint8Array): WrittenSeries {
  const series = empty();
  const runs: Run[] = [];
  let ended = true;
  walk(reader, reader.uint32(), (field, wireType) => {
    const label = field === 1 && wireType === WireType.LengthDelimited;
    if (!label) ended = true;
    if (wireType !== WireType.LengthDelimited) return false;
    if (label) {
      if (ended) runs.push([reader.pos, 0]);
      ended = false;
      reader.skip(wireType, field);
      (runs.at(-1) as Run)[1] = reader.pos;
    } else if (field === 2) readSample(reader, series);
    else if (field === 4) readHistogram(reader, series);
    else {
      if (field === 3) series.exemplars += 1;
      return false;
    }
    return true;
  });
  series.labels = () => orUnreadable(() => labelsOfRuns(bytes, runs));
  const [only, ...others] = runs;
  if (others.length > 0) series.key = keyOf(series.labels());
  else if (only !== undefined) series.key = `b${latin1(bytes.subarray(...only))}`;
  return series;
}

function labelsOfRuns(bytes: Uint8Array, runs: readonly Run[]): string[] {
  const labels: string[] = [];
  for (const [from, to] of runs) {
    const reader = new BinaryReader(bytes.subarray(from, to));
    for (let first = true; reader.pos < reader.len; first = false) {
      if (!first) reader.tag();
      let [name, value] = ["", ""];
      walk(reader, reader.uint32(), (member, type) => {
        if (type !== WireType.LengthDelimited || member > 2) return false;
        if (member === 1) name = reader.string();
        else value = reader.string();
        return true;
      });
      if (labels.length >= 2 * labelsMax) throw tooManyLabels();
      labels.push(name, value);
    }
  }
  return labels;
}

/** An `io.prometheus.write.v2.Request`: its series, in their order. @throws Unreadable */
export function* readVersion2(bytes: Uint8Array): Generator<WrittenSeries> {
  // The symbols may come after what names them.
  const symbols: string[] = [];
  const starts: number[] = [];
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const at = reader.pos;
    const [field, wireType] = reader.tag();
    if (field === 4 && wireType === WireType.LengthDelimited) {
      if (symbols.length === symbolsMax) throw new Unreadable(`there may be at most ${symbolsMax} symbols`);
      symbols.push(reader.string());
    } else {
      if (field === 5 && wireType === WireType.LengthDelimited && starts.length === 0) starts.push(at);
      reader.skip(wireType, field);
    }
  }
  if (starts[0] === undefined) return;
  if (symbols[0] !== "") throw new Unreadable("the first symbol must be empty");
  reader.pos = starts[0];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 5 && wireType === WireType.LengthDelimited) yield seriesOfVersion2(reader, symbols);
    else reader.skip(wireType, field);
  }
}

function symbol(symbols: readonly string[], place: number): string {
  const text = symbols[place];
  if (text === undefined) throw new Unreadable(`there is no symbol ${place}, only ${symbols.length}`);
  return text;
}

function seriesOfVersion2(reader: BinaryReader, symbols: readonly string[]): WrittenSeries {
  const series = empty();
  const places: number[] = [];
  walk(reader, reader.uint32(), (field, wireType) => {
    if (field === 1 && wireType === WireType.LengthDelimited) {
      const end = reader.uint32() + reader.pos;
      while (reader.pos < end && places.length <= 2 * labelsMax) places.push(reader.uint32());
      if (reader.pos !== end) throw tooManyLabels();
    } else if (field === 1 && wireType === WireType.Varint) places.push(reader.uint32());
    else if (wireType !== WireType.LengthDelimited) return false;
    else if (field === 2) readSample(reader, series);
    else if (field === 3) readHistogram(reader, series);
    else if (field === 5) {
      const metadata = { type: 0, help: "", unit: "" };
      walk(reader, reader.uint32(), (member, type) => {
        if (type !== WireType.Varint || (member !== 1 && member !== 3 && member !== 4)) return false;
        if (member === 1) metadata.type = reader.int32();
        else metadata[member === 3 ? "help" : "unit"] = symbol(symbols, reader.uint32());
        return true;
      });
      series.metadata = metadata;
    } else {
      if (field === 4) series.exemplars += 1;
      return false;
    }
    return true;
  });
  if (places.length % 2 === 1) throw new Unreadable("labels_refs must name pairs");
  if (places.length > 2 * labelsMax) throw tooManyLabels();
  const labels = places.map((place) => symbol(symbols, place));
  return { ...series, key: keyOf(labels), labels: () => labels };
}
