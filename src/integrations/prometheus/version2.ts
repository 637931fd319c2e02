import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { MetadataSchema, RequestSchema, TimeSeriesSchema } from "#gen/io/prometheus/write/v2/request_pb.ts";
import { brokenBytes, valueBytesMax } from "../series-rules.ts";
import { checkEnd, nextTag, shapeOf, skip, Unreadable, valueEnd, walk } from "./message-walk.ts";
import { factsOf, factText } from "./metric-facts.ts";
import {
  beginSeries,
  labelsMax,
  newSeries,
  pieceBytes,
  readOn,
  type SeriesForm,
  tooManyLabels,
} from "./series-walk.ts";
import type { SymbolNumbers, SymbolOwner } from "./symbol-numbers.ts";
import { type WriteRequest, wholeOf } from "./write-request.ts";
import { addLabel, shownFieldsMax, shownText, strictText } from "./written-labels.ts";

const requestShape = shapeOf(RequestSchema);
const metadataShape = shapeOf(MetadataSchema);
const numbers = {
  symbols: RequestSchema.field.symbols.number,
  series: RequestSchema.field.timeseries.number,
  type: MetadataSchema.field.type.number,
  help: MetadataSchema.field.helpRef.number,
};
const symbolsMax = 1_000_000;
const symbolsMin = 1024;
/** What a symbol takes beside its bytes: half of it for each of the places between which it lies. */
const spanBytes = 8;

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

/** Stands for the number of a symbol that was not looked for yet, that is not remembered, or that no label may be. */
const [unseen, unknown, tooLong] = [0, -1, -2];

interface Parts {
  symbols: SymbolNumbers;
  owner: SymbolOwner;
  /** Takes so much more memory. @throws code 8 when there is no room */
  reserve(bytes: number): void;
}

/** An `io.prometheus.write.v2.Request`. */
export function version2(bytes: Uint8Array, { symbols, owner, reserve }: Parts): WriteRequest {
  const symbol = { ...owner, ...wholeOf(bytes) };
  let count = 0;
  /** Where the text of each symbol begins and ends. */
  let spans = new Uint32Array();
  let symbolNumber = new Float64Array();
  const keyNumbers = new Float64Array(2 * labelsMax);
  const key = wholeOf(new Uint8Array(keyNumbers.buffer));
  const texts = new Map<number, string | undefined>();
  const facts = new Map<number, string>();
  /** Of metadata, and of what is shown: they are read beside the rest. */
  const ownReader = new BinaryReader(bytes);

  const fromOf = (place: number) => spans[2 * place] as number;
  const toOf = (place: number) => spans[2 * place + 1] as number;
  const absent = (place: number) => `there is no symbol ${place}, only ${count}`;
  const shown = (from: number, to: number) => shownText(bytes, from, to);

  function addSymbol(from: number, to: number) {
    if (count === symbolsMax) throw new Unreadable(`there may be at most ${symbolsMax} symbols`);
    if (2 * count === spans.length) {
      const larger = new Uint32Array(Math.max(symbolsMin, 2 * spans.length));
      reserve((larger.length - spans.length) * spanBytes);
      larger.set(spans);
      spans = larger;
    }
    spans[2 * count] = from;
    spans[2 * count + 1] = to;
    count += 1;
  }

  /** Reads where the symbols lie, which may come after what names them; returns where the first series does. */
  function* readSymbols(): Generator<undefined, number> {
    const reader = new BinaryReader(bytes);
    let first = reader.len;
    let pauseAt = pieceBytes;
    while (reader.pos < reader.len) {
      if (reader.pos > pauseAt) {
        yield undefined;
        pauseAt = reader.pos + pieceBytes;
      }
      const before = reader.pos;
      const tag = nextTag(reader, requestShape);
      if (tag >>> 3 === numbers.series && first === reader.len) first = before;
      if (tag >>> 3 !== numbers.symbols) skip(reader, tag & 7);
      else {
        const to = valueEnd(reader, reader.len);
        addSymbol(reader.pos, to);
        reader.pos = to;
      }
    }
    checkEnd(reader, reader.len);
    symbolNumber = new Float64Array(count);
    return first;
  }

  function at(place: number) {
    symbol.from = fromOf(place);
    symbol.to = toOf(place);
    return symbol;
  }

  function numberOf(place: number): number {
    const before = symbolNumber[place] as number;
    if (before !== unseen) return before;
    const found = toOf(place) - fromOf(place) > valueBytesMax ? tooLong : (symbols.find(at(place)) ?? unknown);
    symbolNumber[place] = found;
    return found;
  }

  /** What is wrong with the label that this reference is of, whose name or value is too long. */
  function longLabel(places: readonly number[], i: number): string | undefined {
    const [name, value] = [places[i & ~1] as number, places[i | 1] as number];
    if (name >= count || value >= count) return absent(Math.max(name, value));
    return brokenBytes(toOf(name) - fromOf(name), toOf(value) - fromOf(value));
  }

  function textAt(from: number, to: number): string | undefined {
    if (!texts.has(from)) texts.set(from, strictText(bytes, from, to));
    return texts.get(from);
  }

  function factAt(place: number): string {
    const before = facts.get(place);
    if (before !== undefined) return before;
    const text = factText(bytes, fromOf(place), toOf(place));
    facts.set(place, text);
    return text;
  }

  return {
    *items() {
      const first = yield* readSymbols();
      if (first === bytes.length) return;
      if (count === 0 || fromOf(0) !== toOf(0)) throw new Unreadable("the first symbol must be empty");
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
    },
    key({ places }) {
      if (places.length % 2 === 1) return "labels_refs must name pairs";
      let known = true;
      for (let i = 0; i < places.length; i++) {
        const place = places[i] as number;
        if (place >= count) return absent(place);
        const number = numberOf(place);
        if (number === tooLong) return longLabel(places, i);
        if (number === unknown) known = false;
        keyNumbers[i] = number;
      }
      key.to = 8 * places.length;
      return known ? key : undefined;
    },
    newKey({ places }) {
      for (let i = 0; i < places.length; i++) {
        const place = places[i] as number;
        if (numberOf(place) === unknown) symbolNumber[place] = symbols.add(at(place));
        keyNumbers[i] = symbolNumber[place] as number;
      }
      key.to = 8 * places.length;
      return key;
    },
    labelBytes: ({ places }) => places.reduce((sum, place) => sum + toOf(place) - fromOf(place), 0),
    labels({ places }) {
      const labels: string[] = [];
      for (let i = 0; i < places.length; i += 2) {
        const [name, value] = [places[i] as number, places[i + 1] as number];
        const rule = addLabel(labels, [fromOf(name), toOf(name), fromOf(value), toOf(value)], textAt);
        if (rule !== undefined) return rule;
      }
      return labels;
    },
    facts({ metadata }) {
      if (metadata === undefined) return undefined;
      const said = { type: 0, help: 0, unit: 0 };
      ownReader.pos = metadata.from;
      const rule = walk(ownReader, metadata.to, metadataShape, (field) => {
        if (field === numbers.type) said.type = ownReader.int32();
        else said[field === numbers.help ? "help" : "unit"] = ownReader.uint32();
        return true;
      });
      if (rule !== undefined) return rule;
      const last = Math.max(said.help, said.unit);
      // Where there are no symbols, 0 names none, and nothing is said.
      if (last >= count) return absent(last);
      return factsOf({ type: said.type, help: factAt(said.help), unit: factAt(said.unit) });
    },
    *shownAt(at) {
      ownReader.pos = at;
      const end = valueEnd(ownReader, ownReader.len);
      const series = newSeries();
      series.end = end;
      for (let fields = 0; ownReader.pos < end && fields < shownFieldsMax; fields++) {
        const tag = nextTag(ownReader, form.shape);
        if (tag >>> 3 !== form.labels) skip(ownReader, tag & 7);
        else if (form.readLabel(ownReader, series, tag & 7, 0) !== undefined) break;
      }
      const { places } = series;
      for (let i = 0; i + 1 < places.length; i += 2) {
        const [name, value] = [places[i] as number, places[i + 1] as number];
        if (name >= count || value >= count) continue;
        yield shown(fromOf(name), toOf(name));
        yield shown(fromOf(value), toOf(value));
      }
    },
  };
}
