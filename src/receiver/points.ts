import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  CompactMetricSchema,
  FailedCompactMetricSchema,
  FailedMetricSchema,
  FailedTaggedMetricSchema,
  type Metric,
  MetricSchema,
  TaggedMetricSchema,
} from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  type PutMetricRequest,
  PutMetricRequestSchema,
  type PutMetricsRequest,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { Config } from "../config.ts";
import { entityId } from "../entities/identity.ts";
import { type PointItem, pointBatch } from "../metrics/point-batch.ts";
import { type MetricStore, storePoints } from "../metrics/store.ts";
import type { ItemRules } from "./item.ts";
import type { LaneKind } from "./lanes.ts";
import { type Kind, type Outcome, putList, type Sender } from "./put.ts";

/** Points in any of their forms, each wrapped as a stream has it. */
type PointKind = Kind<typeof PutMetricRequestSchema, PointItem>;

/** How points are taken. */
export interface PointKinds {
  /** Those of a stream. */
  stream: PointKind;
  /** Stores the lists of a request, one after the other. */
  putAll(sender: Sender, request: PutMetricsRequest, bytes: number): Promise<Outcome<PutMetricRequest>>;
}

type Bounds = Pick<Config, "modelAgeSecMax" | "aheadSecMax" | "metricRetentionSec">;

const emptyMetric = () => ({ case: "canonical" as const, value: create(MetricSchema) });

/** The point that a wrapper holds; an empty one holds an empty point. */
const pointOf = ({ metric }: PutMetricRequest) => (metric.case === undefined ? emptyMetric() : metric);

const schemas = { canonical: MetricSchema, tagged: TaggedMetricSchema, compact: CompactMetricSchema };

const text = (value: unknown) => (typeof value === "string" ? value : "");

function toItem(request: PutMetricRequest): PointItem {
  const { case: form, value } = pointOf(request);
  const dimensions = form === "tagged" ? value.tags : (value as Metric).dimensions;
  const metadata: JsonObject | undefined = form === "canonical" ? value.metadataFields : undefined;
  return {
    metric: (value as Metric).metric,
    dimensions,
    timeMs: Number(value.timestamp),
    value: value.value as number,
    units: text(metadata?.units),
    description: text(metadata?.description),
  };
}

/** Points: `store` is where they go. */
export function pointKinds(config: Bounds, nowMs: () => number, store: MetricStore): PointKinds {
  const rules: ItemRules<typeof PutMetricRequestSchema> = {
    schema: PutMetricRequestSchema,
    bounds: {
      ageSecMax: Math.min(config.modelAgeSecMax, config.metricRetentionSec),
      aheadSecMax: config.aheadSecMax,
    },
    within(request) {
      const { case: form, value } = pointOf(request);
      return { schema: schemas[form], item: value };
    },
    more: ({ metric }, path) =>
      metric.case === "compact"
        ? [{ path: `${path}.id`, rule: "names no metric: there is no registry here; send name and dimensions" }]
        : [],
  };
  const lane: LaneKind<PointItem> = {
    name: "metrics",
    async store(tx, tenantId, items) {
      const batch = pointBatch(items, (dimensions) => entityId(tenantId, dimensions));
      const refused = await storePoints(store, tx, tenantId, batch, nowMs());
      for (const [i, item] of items.entries()) item.refused = refused[batch.places[i] as number] === true;
    },
  };
  const refusal = ({ refused }: PointItem) =>
    refused === true ? `the tenant has ${store.seriesMax} series, as many as BELFRY_SERIES_MAX allows` : undefined;
  const kindOf = (list: string): PointKind => ({ list, rules, toItem, lane, refusal });
  const kinds = {
    compact: kindOf("compactMetrics"),
    tagged: kindOf("taggedMetrics"),
    canonical: kindOf("metrics"),
  };
  return {
    stream: kinds.canonical,
    async putAll(sender, { compactMetrics, taggedMetrics, metrics, detailedResponse }, bytes) {
      const lists = { compact: compactMetrics, tagged: taggedMetrics, canonical: metrics };
      const count = compactMetrics.length + taggedMetrics.length + metrics.length;
      const all: Outcome<PutMetricRequest> = { succeeded: 0, failedCount: 0, failed: [] };
      for (const form of ["compact", "tagged", "canonical"] as const) {
        const wrapped = lists[form].map((value) => ({ metric: { case: form, value } }) as PutMetricRequest);
        const own = { bytes: (bytes * wrapped.length) / Math.max(1, count), detailed: detailedResponse };
        const { succeeded, failedCount, failed } = await putList(kinds[form], sender, wrapped, own);
        all.succeeded += succeeded;
        all.failedCount += failedCount;
        for (const each of failed) all.failed.push(each);
      }
      return all;
    },
  };
}

/** What both answers to points say; the failed ones in the lists of their forms. */
export function pointAnswer({ succeeded, failedCount, failed }: Outcome<PutMetricRequest>) {
  const points = failed.map(({ error, item }) => ({ error, ...pointOf(item) }));
  return {
    succeeded,
    failed: failedCount,
    message: `${succeeded} of ${succeeded + failedCount} metrics processed`,
    failedCompactMetrics: points.flatMap(({ error, ...point }) =>
      point.case === "compact" ? create(FailedCompactMetricSchema, { error, metric: point.value }) : [],
    ),
    failedTaggedMetrics: points.flatMap(({ error, ...point }) =>
      point.case === "tagged" ? create(FailedTaggedMetricSchema, { error, metric: point.value }) : [],
    ),
    failedMetrics: points.flatMap(({ error, ...point }) =>
      point.case === "canonical" ? create(FailedMetricSchema, { error, metric: point.value }) : [],
    ),
  };
}
