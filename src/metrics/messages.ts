import { create } from "@bufbuild/protobuf";
import type { MetricEntry } from "#gen/belfry/dictionary/v1/metric_entry_pb.ts";
import {
  type MetricSeries,
  MetricSeriesSchema,
  type SeriesDictionary,
  SeriesDictionarySchema,
} from "#gen/belfry/metrics/v1/metric_series_pb.ts";
import type { Points } from "./codec/chunk.ts";
import type { Labels } from "./labels.ts";
import { type Notes, readInstrument } from "./notes.ts";

/** What is known of a series beside its points. */
export interface SeriesFacts extends Notes {
  /** Makes its id, which few of those that a clause looks at need. */
  id(): string;
  metric: string;
  /** Absent: none. */
  labels?: Labels | undefined;
  /** What the dictionary says of its metric. */
  entry: MetricEntry | undefined;
}

const numberOr = (text: string) => (text === "" ? undefined : Number(text));
const textOr = (text: string) => (text === "" ? undefined : text);

function toDictionary(entry: MetricEntry): SeriesDictionary {
  return create(SeriesDictionarySchema, {
    name: entry.name,
    layer: entry.layer,
    label: entry.label,
    description: entry.description,
    units: entry.units,
    minimum: numberOr(entry.minimum),
    maximum: numberOr(entry.maximum),
    tags: entry.tags,
    scaleFactor: numberOr(entry.scaleFactor),
    scaleFactorUnits: textOr(entry.scaleFactorUnits),
    scaleFactorString: textOr(entry.scaleFactor),
    defaultEntry: entry.defaultEntry && toDictionary(entry.defaultEntry),
    isRate: entry.isRate,
  });
}

/** The dictionary block of a series: where the dictionary has no entry, or none says it, what the points say. */
function dictionaryOf({ metric, units, description, entry }: SeriesFacts): SeriesDictionary {
  if (entry === undefined)
    return create(SeriesDictionarySchema, { name: metric, layer: "DEFAULT", units, description });
  const dictionary = toDictionary(entry);
  dictionary.units ||= units;
  dictionary.description ||= description;
  return dictionary;
}

/** A series with its values, as the API shows it. */
export function toMetricSeries(facts: SeriesFacts, { times, values }: Points): MetricSeries {
  return create(MetricSeriesSchema, {
    id: facts.id(),
    name: facts.entry?.label || facts.metric,
    dictionary: dictionaryOf(facts),
    timestamps: Array.from(times, BigInt),
    values: Array.from(values),
    labels: facts.labels ?? {},
    ...readInstrument(facts.instrument),
  });
}
