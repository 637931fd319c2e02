import { create, toBinary } from "@bufbuild/protobuf";
import type { ExportMetricsServiceRequest } from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
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
import { ResourceSchema } from "#gen/opentelemetry/proto/resource/v1/resource_pb.ts";
import type { Instrument } from "../../metrics/notes.ts";
import { delimited, fieldsOf, next, undecodable, valueBytes, valueText, varint } from "./fields.ts";

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
  readonly resource: Uint8Array;
  readonly scope: Uint8Array;
}

/** A metric of a resource and scope, as a request has it; in JSON it is put into the same bytes. */
export interface MetricPart {
  of: ScopePart;
  /** The bytes of its name, unit and description, and of whatever else there is beside its points. */
  head: Uint8Array;
  kind: PointKind;
  /** One of `instruments`. */
  instrument: Instrument;
  /** The bytes of each data point. */
  points(): Iterable<Uint8Array>;
}

const none: Uint8Array = new Uint8Array();
const twice = () => undecodable("a member that comes once comes twice");
const kinds = new Map<number, PointKind>(
  (Object.keys(pointSchemas) as PointKind[]).map((kind) => [MetricSchema.field[kind].number, kind]),
);
const numbers = {
  resource: ResourceMetricsSchema.field.resource.number,
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

/** The members of one field that are messages. */
function* members(bytes: Uint8Array, field: number): Generator<Uint8Array> {
  const all = fieldsOf(bytes);
  while (next(all)) if (all.field === field && all.type === delimited) yield valueBytes(all);
}

/** The only member of a field; empty where there is none. */
function member(bytes: Uint8Array, field: number): Uint8Array {
  const [first = none, second] = members(bytes, field);
  if (second !== undefined) throw twice();
  return first;
}

/** Each metric of an ExportMetricsServiceRequest; undefined for each resource and scope, so that all that is walked over is counted. */
export function* partsOfBytes(request: Uint8Array): Generator<MetricPart | undefined> {
  for (const resourceMetrics of members(request, 1)) {
    yield undefined;
    const resource = member(resourceMetrics, numbers.resource);
    for (const scopeMetrics of members(resourceMetrics, numbers.scopes)) {
      yield undefined;
      const of = { resource, scope: member(scopeMetrics, numbers.scope) };
      for (const metric of members(scopeMetrics, numbers.metrics)) yield metricOf(metric, of);
    }
  }
}

function metricOf(metric: Uint8Array, of: ScopePart): MetricPart | undefined {
  let kind: PointKind | undefined;
  let data: Uint8Array = none;
  let head: Uint8Array = metric;
  for (const all = fieldsOf(metric); next(all); ) {
    const found = all.type === delimited ? kinds.get(all.field) : undefined;
    if (found === undefined) continue;
    if (kind !== undefined) throw twice();
    kind = found;
    data = valueBytes(all);
    head = metric.subarray(0, all.start);
    if (all.to < metric.length) head = Buffer.concat([head, metric.subarray(all.to)]);
  }
  return kind && { of, head, kind, instrument: instrumentOf(kind, data), points: () => members(data, numbers.points) };
}

/** What the bytes of a metric's data say beside its points. */
function instrumentOf(kind: PointKind, data: Uint8Array): Instrument {
  let [temporality, isMonotonic] = [0, false];
  if (kind === "gauge" || kind === "summary") return instrumentNamed(kind, temporality, isMonotonic);
  for (const all = fieldsOf(data); next(all); ) {
    if (all.type !== varint) continue;
    if (all.field === numbers.temporality) temporality = all.number;
    else if (all.field === numbers.isMonotonic) isMonotonic = all.number !== 0;
  }
  return instrumentNamed(kind, temporality, isMonotonic);
}

/** A temporality that there is not, and that of what counts nothing, are none. */
function instrumentNamed(kind: PointKind, temporality: number, isMonotonic: boolean): Instrument {
  const [none, ...named] = byKind[kind === "sum" && isMonotonic ? "counter" : kind];
  return named[temporality - 1] ?? none;
}

/** The texts of a metric. @throws code 3 for what is no UTF-8 */
export function textsOf(head: Uint8Array): { name: string; unit: string; description: string } {
  const texts = { name: "", unit: "", description: "" };
  for (const all = fieldsOf(head); next(all); ) {
    if (all.type !== delimited) continue;
    if (all.field === numbers.name) texts.name = valueText(all);
    else if (all.field === numbers.unit) texts.unit = valueText(all);
    else if (all.field === numbers.description) texts.description = valueText(all);
  }
  return texts;
}

/** The same of a request that was decoded. */
export function* partsOfMessage({ resourceMetrics }: ExportMetricsServiceRequest): Generator<MetricPart | undefined> {
  for (const { resource, scopeMetrics } of resourceMetrics) {
    yield undefined;
    const resourceBytes = resource === undefined ? none : toBinary(ResourceSchema, resource);
    for (const { scope, metrics } of scopeMetrics) {
      yield undefined;
      const scopeBytes = scope === undefined ? none : toBinary(InstrumentationScopeSchema, scope);
      const of = { resource: resourceBytes, scope: scopeBytes };
      for (const { name, unit, description, data } of metrics) {
        const { case: kind, value } = data;
        if (kind === undefined) {
          yield undefined;
          continue;
        }
        function* points() {
          for (const point of value?.dataPoints ?? []) yield toBinary(pointSchemas[kind as PointKind], point as never);
        }
        const head = toBinary(MetricSchema, create(MetricSchema, { name, unit, description }));
        const said = { aggregationTemporality: 0, isMonotonic: false, ...value };
        const named = instrumentNamed(kind, said.aggregationTemporality, said.isMonotonic);
        yield { of, head, kind, instrument: named, points };
      }
    }
  }
}
