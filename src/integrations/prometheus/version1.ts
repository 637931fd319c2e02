import { BinaryReader } from "@bufbuild/protobuf/wire";
import {
  LabelSchema,
  MetricMetadataSchema,
  TimeSeriesSchema,
  WriteRequestSchema,
} from "#gen/prometheus/remote_write_pb.ts";
import { setKey } from "../../metrics/series-key.ts";
import { nameBytesMax } from "../series-rules.ts";
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
  type WrittenSeries,
} from "./series-walk.ts";
import type { WriteRequest, WrittenMetadata } from "./write-request.ts";
import { addLabel, shownFieldsMax, shownText, strictText, type TextAt, textsBetween } from "./written-labels.ts";

const requestShape = shapeOf(WriteRequestSchema);
const labelShape = shapeOf(LabelSchema);
const metadataShape = shapeOf(MetricMetadataSchema);
const numbers = {
  series: WriteRequestSchema.field.timeseries.number,
  metadata: WriteRequestSchema.field.metadata.number,
  name: LabelSchema.field.name.number,
  type: MetricMetadataSchema.field.type.number,
  family: MetricMetadataSchema.field.metricFamilyName.number,
  help: MetricMetadataSchema.field.help.number,
};

const form: SeriesForm = {
  shape: shapeOf(TimeSeriesSchema),
  labels: TimeSeriesSchema.field.labels.number,
  samples: TimeSeriesSchema.field.samples.number,
  histograms: TimeSeriesSchema.field.histograms.number,
  metadata: undefined,
  readLabel(reader, series, _type, at) {
    if (series.labels === labelsMax) return tooManyLabels;
    series.labels += 1;
    reader.pos = valueEnd(reader, series.end);
    const { places } = series;
    if (places.at(-1) === at) places[places.length - 1] = reader.pos;
    else places.push(at, reader.pos);
    return undefined;
  },
};

/**
 * A `prometheus.WriteRequest`.
 * @param take takes a series that lies between two places, or answers false; `at` is where its length stands
 */
export function version1(
  bytes: Uint8Array,
  take: (from: number, to: number, at: number) => boolean = () => false,
): WriteRequest {
  /** Of labels, which are read beside the rest. */
  const labelReader = new BinaryReader(bytes);
  const shown = (from: number, to: number) => shownText(bytes, from, to);

  function setKeyOf({ places }: WrittenSeries) {
    const runs: Uint8Array[] = [];
    for (let i = 2; i < places.length; i += 2) runs.push(bytes.subarray(places[i], places[i + 1]));
    const [from = 0, to = 0] = places;
    if (runs.length === 0) setKey(bytes, from, to);
    else setKey(Buffer.concat([bytes.subarray(from, to), ...runs]));
  }

  function labelsOf({ places }: WrittenSeries): string[] | string {
    const labels: string[] = [];
    for (let i = 0; i < places.length; i += 2) {
      const [from, to] = [places[i] as number, places[i + 1] as number];
      const textAt = textsBetween(bytes, from, to);
      labelReader.pos = from;
      while (labelReader.pos < to) {
        labelReader.uint32();
        const rule = readLabel(labelReader, labels, textAt);
        if (rule !== undefined) return rule;
      }
    }
    return labels;
  }

  return {
    *items() {
      const reader = new BinaryReader(bytes);
      const series = newSeries();
      let pauseAt = 0;
      while (reader.pos < reader.len) {
        if (reader.pos > pauseAt) {
          yield undefined;
          pauseAt = reader.pos + pieceBytes;
        }
        const tag = nextTag(reader, requestShape);
        const field = tag >>> 3;
        if (field === numbers.metadata) yield readMetadata(reader, bytes);
        else if (field !== numbers.series) skip(reader, tag & 7);
        else {
          const at = reader.pos;
          const end = valueEnd(reader, reader.len);
          if (take(reader.pos, end, at)) reader.pos = end;
          else {
            reader.pos = at;
            beginSeries(reader, series);
            while (!readOn(reader, form, series)) yield undefined;
            yield series;
          }
        }
      }
      checkEnd(reader, reader.len);
    },
    setKey: (series) => void setKeyOf(series),
    labelBytes: ({ places }) => places.reduce((sum, place, i) => sum + (i % 2 === 0 ? -place : place), 0),
    labels: labelsOf,
    facts: () => undefined,
    *shownAt(at) {
      labelReader.pos = at;
      const end = valueEnd(labelReader, labelReader.len);
      for (let fields = 0; labelReader.pos < end && fields < shownFieldsMax; fields++) {
        const tag = nextTag(labelReader, form.shape);
        const labels: string[] = [];
        if (tag >>> 3 !== form.labels) skip(labelReader, tag & 7);
        else if (readLabel(labelReader, labels, shown) !== undefined) return;
        yield* labels;
      }
    },
  };
}

/** Reads a label, whose length comes next, and adds it to others; returns the rule that it breaks. */
function readLabel(reader: BinaryReader, labels: string[], textAt: TextAt): string | undefined {
  const end = valueEnd(reader, reader.len);
  let [nameFrom, nameTo, valueFrom, valueTo] = [0, 0, 0, 0];
  const rule = walk(reader, end, labelShape, (field) => {
    const to = valueEnd(reader, end);
    if (field === numbers.name) [nameFrom, nameTo] = [reader.pos, to];
    else [valueFrom, valueTo] = [reader.pos, to];
    reader.pos = to;
    return true;
  });
  return rule ?? addLabel(labels, [nameFrom, nameTo, valueFrom, valueTo], textAt);
}

function readMetadata(reader: BinaryReader, bytes: Uint8Array): WrittenMetadata {
  const end = valueEnd(reader, reader.len);
  const said = { type: 0, family: "", help: "", unit: "" };
  const rule = walk(reader, end, metadataShape, (field) => {
    if (field === numbers.type) {
      said.type = reader.int32();
      return true;
    }
    const to = valueEnd(reader, end);
    const from = reader.pos;
    reader.pos = to;
    if (field === numbers.family) said.family = to - from > nameBytesMax ? "" : (strictText(bytes, from, to) ?? "");
    else said[field === numbers.help ? "help" : "unit"] = factText(bytes, from, to);
    return true;
  });
  if (rule !== undefined) throw new Unreadable("metadata have too many fields");
  return { family: said.family, facts: factsOf(said) };
}
