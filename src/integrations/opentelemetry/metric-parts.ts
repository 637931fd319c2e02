import { InstrumentationScopeSchema } from "#gen/opentelemetry/proto/common/v1/common_pb.ts";
import {
  ExponentialHistogramDataPointSchema,
  GaugeSchema,
  HistogramDataPointSchema,
  MetricSchema,
  NumberDataPointSchema,
  ResourceMetricsSchema,
  ScopeMetricsSchema,
  SummaryDataPointSchema,
  SumSchema,
} from "#gen/opentelemetry/proto/metrics/v1/metrics_pb.ts";
import type { Instrument } from "../../metrics/notes.ts";
import {
  delimited,
  fieldsOf,
  next,
  pauseDue,
  undecodable,
  valueBytes,
  valueText,
  varint,
  type Walk,
} from "./fields.ts";
import type { ResourcePart } from "./resource-parts.ts";
import { member, members, none, resourcesIn } from "./resource-parts.ts";

/** The schemas of data points. */
export const pointSchemas = {
  gauge: NumberDataPointSchema,
  sum: NumberDataPointSchema,
  histogram: HistogramDataPointSchema,
  exponentialHistogram: ExponentialHistogramDataPointSchema,
  summary: SummaryDataPointSchema,
} as const;
export type PointKind = keyof typeof pointSchemas;

/** A resource and a scope: the same object for all of their metrics in a request. */
export interface ScopePart {
  readonly resource: ResourcePart;
  readonly scope: Uint8Array;
  /** The number by which it is remembered; set when it is looked up. */
  id?: number;
}

/** A metric of a resource and scope, as a request has it. */
export interface MetricPart {
  of: ScopePart;
  /** The bytes of its name, unit and description, and of whatever else there is beside its points. */
  head: Uint8Array;
  kind: PointKind;
  /** One of `instruments`. */
  instrument: Instrument;
  /** The bytes of each data point; undefined where it is time for a pause. */
  points(): Iterable<Uint8Array | undefined>;
}

const kinds = new Map<number, PointKind>(
  (Object.keys(pointSchemas) as PointKind[]).map((kind) => [MetricSchema.field[kind].number, kind]),
);
const numbers = {
  scopes: ResourceMetricsSchema.field.scopeMetrics.number,
  scope: ScopeMetricsSchema.field.scope.number,
  metrics: ScopeMetricsSchema.field.metrics.number,
  name: MetricSchema.field.name.number,
  description: MetricSchema.field.description.number,
  unit: MetricSchema.field.unit.number,
  points: GaugeSchema.field.dataPoints.number,
  temporality: SumSchema.field.aggregationTemporality.number,
  isMonotonic: SumSchema.field.isMonotonic.number,
};

/** Without a temporality, and with each by its number. */
const byKind: Record<PointKind | "counter", readonly [Instrument, ...Instrument[]]> = {
  gauge: ["GAUGE"],
  sum: ["UP_DOWN_COUNTER", "UP_DOWN_COUNTER DELTA", "UP_DOWN_COUNTER CUMULATIVE"],
  counter: ["COUNTER", "COUNTER DELTA", "COUNTER CUMULATIVE"],
  histogram: ["HISTOGRAM", "HISTOGRAM DELTA", "HISTOGRAM CUMULATIVE"],
  exponentialHistogram: ["HISTOGRAM", "HISTOGRAM DELTA", "HISTOGRAM CUMULATIVE"],
  summary: ["SUMMARY"],
};
/** What metrics may be. */
export const instruments: readonly Instrument[] = [...new Set(Object.values(byKind).flat())];

/**
 * Each metric of an ExportMetricsServiceRequest; undefined for each resource and scope, so that all that is walked over is
 * counted, and where it is time for a pause. @throws code 3 for what is no Protobuf, code 8 for too many fields
 */
export function* partsOfBytes(request: Uint8Array, walk: Walk): Generator<MetricPart | undefined> {
  for (const found of resourcesIn(request, walk)) {
    yield undefined;
    if (found === undefined) continue;
    for (const scopeMetrics of members(found.bytes, numbers.scopes, walk)) {
      yield undefined;
      if (scopeMetrics === undefined) continue;
      const scope = yield* member(scopeMetrics, numbers.scope, walk);
      yield* metricsIn(scopeMetrics, { resource: found.resource, scope }, walk);
    }
  }
}

function* metricsIn(scopeMetrics: Uint8Array, of: ScopePart, walk: Walk): Generator<MetricPart | undefined> {
  for (const metric of members(scopeMetrics, numbers.metrics, walk)) {
    if (metric === undefined) {
      yield undefined;
      continue;
    }
    let kind: PointKind | undefined;
    let data: Uint8Array = none;
    let head: Uint8Array = metric;
    for (const all = fieldsOf(metric, walk); next(all); ) {
      if (pauseDue(walk)) yield undefined;
      const found = all.type === delimited ? kinds.get(all.field) : undefined;
      if (found === undefined) continue;
      if (kind !== undefined) throw undecodable("a member that comes once comes twice");
      kind = found;
      data = valueBytes(all);
      head = metric.subarray(0, all.start);
      if (all.to < metric.length) head = Buffer.concat([head, metric.subarray(all.to)]);
    }
    if (kind === undefined) {
      yield undefined;
      continue;
    }
    let [temporality, isMonotonic] = [0, false];
    if (kind !== "gauge" && kind !== "summary") {
      for (const all = fieldsOf(data, walk); next(all); ) {
        if (pauseDue(walk)) yield undefined;
        if (all.type !== varint) continue;
        if (all.field === numbers.temporality) temporality = all.number;
        else if (all.field === numbers.isMonotonic) isMonotonic = all.number !== 0;
      }
    }
    const instrument = instrumentNamed(kind, temporality, isMonotonic);
    yield { of, head, kind, instrument, points: () => members(data, numbers.points, walk) };
  }
}

/** A temporality that there is not, and that of what counts nothing, are none. */
function instrumentNamed(kind: PointKind, temporality: number, isMonotonic: boolean): Instrument {
  const [none, ...named] = byKind[kind === "sum" && isMonotonic ? "counter" : kind];
  return named[temporality - 1] ?? none;
}

/** Characters of a metric's texts that are read: none of them may be longer. */
const textCharactersMax = 1024;

/** The texts of a metric, or so much of them that they are still too long. @throws code 3 for what is no UTF-8 */
export function textsOf(head: Uint8Array, walk: Walk): { name: string; unit: string; description: string } {
  const texts = { name: "", unit: "", description: "" };
  for (const all = fieldsOf(head, walk); next(all); ) {
    if (all.type !== delimited) continue;
    if (all.field === numbers.name) texts.name = valueText(all, textCharactersMax);
    else if (all.field === numbers.unit) texts.unit = valueText(all, textCharactersMax);
    else if (all.field === numbers.description) texts.description = valueText(all, textCharactersMax);
  }
  return texts;
}

const scopeName = InstrumentationScopeSchema.field.name.number;

/** The bytes of a scope's name, or so many of them that it is still too long for a label. */
export function scopeNameOf(scope: Uint8Array, walk: Walk): string {
  let name = "";
  for (const all = fieldsOf(scope, walk); next(all); )
    if (all.field === scopeName && all.type === delimited) name = valueText(all, textCharactersMax);
  return name;
}
