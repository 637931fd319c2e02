import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { MetadataSchema, RequestSchema, TimeSeriesSchema } from "#gen/io/prometheus/write/v2/request_pb.ts";
import type { Notes } from "../../metrics/notes.ts";
import { setKey } from "../../metrics/series-key.ts";
import { brokenBytes } from "../series-rules.ts";
import { checkEnd, nextTag, shapeOf, skip, Unreadable, valueEnd, walk } from "./message-walk.ts";
import { factsOf } from "./metric-facts.ts";
import {
  beginSeries,
  labelsMax,
  newSeries,
  pieceBytes,
  readOn,
  type SeriesForm,
  tooManyLabels,
  type WrittenSeries,
} from "./series-walk.ts";
import { type Symbols, tooLong } from "./symbols.ts";
import type { WriteRequest } from "./write-request.ts";
import { notUtf8, shownFieldsMax } from "./written-labels.ts";

const requestShape = shapeOf(RequestSchema);
const metadataShape = shapeOf(MetadataSchema);
const numbers = {
  symbols: RequestSchema.field.symbols.number,
  series: RequestSchema.field.timeseries.number,
  type: MetadataSchema.field.type.number,
  help: MetadataSchema.field.helpRef.number,
};

const form: SeriesForm = {
  shape: shapeOf(TimeSeriesSchema),
  labels: TimeSeriesSchema.field.labelsRefs.number,
  samples: TimeSeriesSchema.field.samples.number,
  histograms: TimeSeriesSchema.field.histograms.number,
  metadata: TimeSeriesSchema.field.metadata.number,
  readLabel(reader, { places, end: seriesEnd }, type) {
    const end = type === WireType.LengthDelimited ? valueEnd(reader, seriesEnd) : reader.pos + 1;
    while (reader.pos < end) {
      if (places.length === 2 * labelsMax) return tooManyLabels;
      places.push(reader.uint32());
    }
    if (type === WireType.LengthDelimited) checkEnd(reader, end);
    return undefined;
  },
};

const absent = (place: number, symbols: Symbols) => `there is no symbol ${place}, only ${symbols.count()}`;

/** An `io.prometheus.write.v2.Request`; its symbols are added to those that are handed over. */
export function version2(bytes: Uint8Array, symbols: Symbols): WriteRequest {
  const numbersOfKey = new Float64Array(2 * labelsMax + 3);
  const keyBytes = new Uint8Array(numbersOfKey.buffer);
  /** Of metadata, and of what is shown: they are read beside the rest. */
  const ownReader = new BinaryReader(bytes);

  return {
    items: () => items(bytes, symbols),
    setKey({ places, metadata }) {
      if (places.length % 2 === 1) return "labels_refs must name pairs";
      for (let i = 0; i < places.length; i++) {
        const place = places[i] as number;
        if (place >= symbols.count()) return absent(place, symbols);
        const number = symbols.number(place);
        if (number === tooLong) return longLabel(places, i, symbols);
        numbersOfKey[i] = number;
      }
      let count = places.length;
      const said = metadata && metadataIn(ownReader, metadata, symbols);
      if (typeof said === "string") return said;
      if (said !== undefined) {
        // Labels come in pairs, so that three more are none.
        numbersOfKey[count++] = said.type;
        numbersOfKey[count++] = symbols.factNumber(said.help);
        numbersOfKey[count++] = symbols.factNumber(said.unit);
      }
      setKey(keyBytes, 0, 8 * count);
      return undefined;
    },
    labelBytes: ({ places }) => places.reduce((sum, place) => sum + symbols.bytes(place), 0),
    labels: ({ places }) => labelsOf(places, symbols),
    facts: ({ metadata }) => metadata && factsIn(ownReader, metadata, symbols),
    shownAt: (at) => shownAt(ownReader, at, symbols),
  };
}

function* items(bytes: Uint8Array, symbols: Symbols): Generator<WrittenSeries | undefined> {
  const first = yield* readSymbols(bytes, symbols);
  if (first === bytes.length) return;
  if (symbols.count() === 0 || symbols.bytes(0) > 0) throw new Unreadable("the first symbol must be empty");
  const reader = new BinaryReader(bytes);
  const series = newSeries();
  let pauseAt = 0;
  for (reader.pos = first; reader.pos < reader.len; ) {
    if (reader.pos > pauseAt) {
      yield undefined;
      pauseAt = reader.pos + pieceBytes;
    }
    const tag = nextTag(reader, requestShape);
    if (tag >>> 3 !== numbers.series) skip(reader, tag & 7);
    else {
      beginSeries(reader, series);
      while (!readOn(reader, form, series)) yield undefined;
      yield series;
    }
  }
}

/** Adds the symbols of a request, which may come after what names them; returns where its first series is. */
function* readSymbols(bytes: Uint8Array, symbols: Symbols): Generator<undefined, number> {
  const reader = new BinaryReader(bytes);
  let first = reader.len;
  let pauseAt = pieceBytes;
  while (reader.pos < reader.len) {
    if (reader.pos > pauseAt) {
      yield undefined;
      pauseAt = reader.pos + pieceBytes;
    }
    const at = reader.pos;
    const tag = nextTag(reader, requestShape);
    if (tag >>> 3 === numbers.series && first === reader.len) first = at;
    if (tag >>> 3 !== numbers.symbols) skip(reader, tag & 7);
    else {
      const to = valueEnd(reader, reader.len);
      symbols.add(reader.pos, to);
      reader.pos = to;
    }
  }
  checkEnd(reader, reader.len);
  return first;
}

/** Finds what is wrong with the label of a reference whose symbol is too long. */
function longLabel(places: readonly number[], i: number, symbols: Symbols): string | undefined {
  const [name, value] = [places[i & ~1] as number, places[i | 1] as number];
  const last = Math.max(name, value);
  return last >= symbols.count() ? absent(last, symbols) : brokenBytes(symbols.bytes(name), symbols.bytes(value));
}

function labelsOf(places: readonly number[], symbols: Symbols): string[] | string {
  const labels: string[] = [];
  for (let i = 0; i < places.length; i += 2) {
    const [name, value] = [places[i] as number, places[i + 1] as number];
    const rule = brokenBytes(symbols.bytes(name), symbols.bytes(value));
    if (rule !== undefined) return rule;
    const [nameText, valueText] = [symbols.text(name), symbols.text(value)];
    if (nameText === undefined || valueText === undefined) return notUtf8;
    labels.push(nameText, valueText);
  }
  return labels;
}

/** The type of a metric and the places of its texts; a text: the rule that they break. */
function metadataIn(reader: BinaryReader, { from, to }: { from: number; to: number }, symbols: Symbols) {
  const said = { type: 0, help: 0, unit: 0 };
  reader.pos = from;
  const rule = walk(reader, to, metadataShape, (field) => {
    if (field === numbers.type) said.type = reader.int32();
    else said[field === numbers.help ? "help" : "unit"] = reader.uint32();
    return true;
  });
  if (rule !== undefined) return rule;
  const last = Math.max(said.help, said.unit);
  return last >= symbols.count() ? absent(last, symbols) : said;
}

function factsIn(reader: BinaryReader, at: { from: number; to: number }, symbols: Symbols): Notes | string {
  const said = metadataIn(reader, at, symbols);
  if (typeof said === "string") return said;
  return factsOf({ type: said.type, help: symbols.fact(said.help), unit: symbols.fact(said.unit) });
}

function* shownAt(reader: BinaryReader, at: number, symbols: Symbols): Generator<string> {
  const series = newSeries();
  reader.pos = at;
  series.end = valueEnd(reader, reader.len);
  for (let fields = 0; reader.pos < series.end && fields < shownFieldsMax; fields++) {
    const tag = nextTag(reader, form.shape);
    if (tag >>> 3 !== form.labels) skip(reader, tag & 7);
    else if (form.readLabel(reader, series, tag & 7, 0) !== undefined) break;
  }
  const { places } = series;
  for (let i = 0; i + 1 < places.length; i += 2) {
    const [name, value] = [places[i] as number, places[i + 1] as number];
    if (Math.max(name, value) >= symbols.count()) continue;
    yield symbols.shown(name);
    yield symbols.shown(value);
  }
}
