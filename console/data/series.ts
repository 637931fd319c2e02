import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { type Aggregator, MetricQueryService } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import type { MetricSeries } from "#gen/belfry/metrics/v1/metric_series_pb.ts";
import { clientOf } from "./calls.ts";

const metrics = clientOf(MetricQueryService);

/** A series as it is drawn. */
export interface PlotSeries {
  readonly key: string;
  /** The metric's label, with the labels of the series. */
  readonly name: string;
  /** The metric's name. */
  readonly metric: string;
  readonly units: string;
  readonly description: string;
  readonly timestamps: number[];
  readonly values: number[];
  /** Its place among the styles of lines; absent: that of its order. */
  readonly place?: number;
}

/** A series as it was read. */
export interface ReadSeries extends PlotSeries {
  /** The metric's label, else its name. */
  readonly title: string;
  readonly labels: Readonly<Record<string, string>>;
}

interface Asked {
  readonly entityId: string;
  readonly start: number;
  readonly end: number;
  readonly aggregator: Aggregator;
  /** As the API takes it, such as `60s`. */
  readonly period: string;
  readonly metricClause?: Clause;
  readonly pageSize: number;
  /** Leaves values in the unit in which agents send them. */
  readonly asSent?: boolean;
}

/** Series of an entity, as they are drawn. */
export async function readSeries(asked: Asked, signal: AbortSignal): Promise<{ series: ReadSeries[]; more: boolean }> {
  const { entityId, start, end, aggregator, period, metricClause, pageSize, asSent = false } = asked;
  const answer = await metrics.searchMetrics(
    {
      entityClause: { withIds: { ids: [entityId] } },
      ...(metricClause && { metricClause }),
      timeRange: { start: timestampFromMs(start), end: timestampFromMs(end) },
      downsample: { aggregator, period },
      pageSize,
    },
    { signal },
  );
  return { series: answer.metrics.map((each) => drawn(each, asSent)), more: answer.nextPageToken !== "" };
}

/** Returns the clause that only this series of its entity meets, and those of its metric that have more labels. */
export function clauseOfSeries({ metric, labels }: ReadSeries): Clause {
  const equal = (field: string, value: string) =>
    create(ClauseSchema, {
      filter: { field, operation: Operation.OP_EQUALS, value: { kind: { case: "stringValue", value } } },
    });
  const clauses = [
    equal("name", metric),
    ...Object.entries(labels).map(([key, value]) => equal(`labels.${key}`, value)),
  ];
  return create(ClauseSchema, { allOf: { clauses } });
}

function drawn({ id, name, dictionary, labels, timestamps, values }: MetricSeries, asSent: boolean): ReadSeries {
  const marks = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  const factor = asSent ? 1 : (dictionary?.scaleFactor ?? 1);
  const scaledUnits = dictionary?.scaleFactorUnits
    ?.split("->")
    .at(asSent ? 0 : -1)
    ?.trim();
  return {
    key: id,
    name: marks.length === 0 ? name : `${name} {${marks.sort().join(", ")}}`,
    title: name,
    labels,
    metric: dictionary?.name ?? name,
    units: scaledUnits ?? dictionary?.units ?? "",
    description: dictionary?.description ?? "",
    timestamps: timestamps.map(Number),
    values: factor === 1 ? values : values.map((value) => value * factor),
  };
}

/** A period that divides a range into a few hundred buckets, of a length that people know. */
export function periodOf(start: number, end: number, buckets = 240): string {
  const wanted = (end - start) / buckets / 1000;
  const known = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400];
  return `${known.find((each) => each >= wanted) ?? Math.ceil(wanted / 86_400) * 86_400}s`;
}
