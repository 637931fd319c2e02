import type { InstrumentationScope, KeyValue } from "#gen/opentelemetry/proto/common/v1/common_pb.ts";
import {
  AggregationTemporality,
  DataPointFlags,
  type HistogramDataPoint,
  type Metric,
} from "#gen/opentelemetry/proto/metrics/v1/metrics_pb.ts";
import { textOf } from "./attributes.ts";

/** One value of one series, of a resource. */
export interface DataPoint {
  metric: string;
  labels: Record<string, string>;
  /** ms since the epoch; 0: the sender gave no time. */
  timeMs: number;
  value: number;
}

/** What a metric says of its series. */
export interface MetricFacts {
  units: string;
  description: string;
  temporality: "" | "cumulative" | "delta";
  monotonic: boolean;
}

type Labels = Record<string, string>;

/** Whether a point is there, and no note that its series has ended. */
const recorded = ({ flags }: { flags: number }) => (flags & DataPointFlags.NO_RECORDED_VALUE_MASK) === 0;
const msOf = (nanoseconds: bigint) => Number(nanoseconds / 1_000_000n);

/** The labels of a point: its attributes, and the name of the library that made it. */
function labelsOf(attributes: readonly KeyValue[], scope: InstrumentationScope | undefined): Labels {
  const labels: Labels = {};
  if (scope !== undefined && scope.name !== "") labels["otel.scope.name"] = scope.name;
  for (const { key, value } of attributes) {
    const text = textOf(value);
    if (key !== "" && text !== "") labels[key] = text;
  }
  return labels;
}

/** Units, description, and what the values of a metric cover. */
export function factsOf({ unit, description, data }: Metric): MetricFacts {
  const value = data.value;
  const temporality = value && "aggregationTemporality" in value ? value.aggregationTemporality : undefined;
  return {
    units: unit,
    description,
    temporality:
      temporality === AggregationTemporality.CUMULATIVE
        ? "cumulative"
        : temporality === AggregationTemporality.DELTA
          ? "delta"
          : "",
    monotonic: data.case === "sum" && data.value.isMonotonic,
  };
}

/** Each data point of a metric with the values that are made of it: one of a number, several of a distribution. */
export function* dataPointsOf(metric: Metric, scope: InstrumentationScope | undefined): Generator<DataPoint[]> {
  const { name, data } = metric;
  if (data.case === undefined) return;
  for (const point of data.value.dataPoints) {
    if (!recorded(point)) {
      yield [];
      continue;
    }
    const labels = labelsOf(point.attributes, scope);
    const timeMs = msOf(point.timeUnixNano);
    const made = (suffix: string, value: number, more?: Labels): DataPoint => ({
      metric: name === "" ? "" : `${name}${suffix}`,
      labels: more === undefined ? labels : { ...labels, ...more },
      timeMs,
      value,
    });
    switch (point.$typeName) {
      case "opentelemetry.proto.metrics.v1.NumberDataPoint":
        yield [made("", point.value.case === undefined ? Number.NaN : Number(point.value.value))];
        break;
      case "opentelemetry.proto.metrics.v1.SummaryDataPoint":
        yield [
          made(".count", Number(point.count)),
          made(".sum", point.sum),
          ...point.quantileValues.map(({ quantile, value }) => made("", value, { quantile: String(quantile) })),
        ];
        break;
      default:
        yield [
          made(".count", Number(point.count)),
          ...(["sum", "min", "max"] as const).flatMap((which) => {
            const value = point[which];
            return value === undefined ? [] : [made(`.${which}`, value)];
          }),
          ...("bucketCounts" in point ? bucketsOf(point).map(([le, count]) => made(".bucket", count, { le })) : []),
        ];
    }
  }
}

/** How many values do not exceed each bound, the last one being `+Inf`, as Prometheus writes its buckets. */
function bucketsOf({ explicitBounds, bucketCounts }: HistogramDataPoint): [le: string, count: number][] {
  let count = 0;
  return bucketCounts.map((more, i) => {
    count += Number(more);
    const bound = explicitBounds[i];
    return [bound === undefined || bound === Number.POSITIVE_INFINITY ? "+Inf" : String(bound), count];
  });
}
