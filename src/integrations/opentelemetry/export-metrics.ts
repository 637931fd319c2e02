import { create } from "@bufbuild/protobuf";
import {
  type ExportMetricsServiceRequest,
  type ExportMetricsServiceResponse,
  ExportMetricsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import type { PointKinds } from "../../receiver/points.ts";
import type { CheckedPoints, CheckedSeries } from "../../receiver/put-points.ts";
import { cut, oneLine } from "../foreign-texts.ts";
import type { Call } from "../integration.ts";
import { brokenCount, brokenLabel, brokenMetric } from "../series-rules.ts";
import { type DataPoint, dataPointsOf, factsOf } from "./data-points.ts";
import { rejections } from "./rejections.ts";
import { entityOfResource, type ResourceEntity } from "./resource.ts";
import type { ResourceModels } from "./resource-models.ts";

const factCharactersMax = 1024;

/** Why a value cannot be stored; undefined: it can. */
function brokenPoint({ metric, labels, value }: DataPoint): string | undefined {
  if (!Number.isFinite(value)) return "the value must be finite";
  const names = Object.keys(labels);
  const rule = brokenMetric(metric) ?? brokenCount(names.length);
  if (rule !== undefined) return rule;
  for (const name of names) {
    const broken = brokenLabel(name, labels[name] as string);
    if (broken !== undefined) return broken;
  }
  return undefined;
}

interface Read {
  points: CheckedPoints;
  entities: ResourceEntity[];
  /** Of each value, the data point that it is of. */
  owners: number[];
  names: string[];
  dataPoints: number;
  skipped: number;
  broken: Map<number, string>;
}

/** All values of a request, by data points. */
async function read({ resourceMetrics }: ExportMetricsServiceRequest, { nowMs, pace }: Call): Promise<Read> {
  const now = Math.floor(nowMs());
  const broken = new Map<number, string>();
  const all: Read = {
    ...{ points: { series: [], times: [], values: [] }, entities: [], owners: [], names: [] },
    ...{ dataPoints: 0, skipped: 0, broken },
  };
  for (const { resource, scopeMetrics } of resourceMetrics) {
    const entity = entityOfResource(resource);
    all.entities.push(entity);
    for (const { scope, metrics } of scopeMetrics) {
      for (const metric of metrics) {
        const { units, description } = factsOf(metric);
        const facts = { units: short(units), description: short(description) };
        for (const values of dataPointsOf(metric, scope)) {
          const wait = pace();
          if (wait !== undefined) await wait;
          add(
            all,
            metric.name,
            values,
            (each) => ({
              ...{ metric: each.metric, dimensions: entity.dimensions, ...facts },
              labels: Object.keys(each.labels).length === 0 ? undefined : each.labels,
            }),
            now,
          );
        }
      }
    }
  }
  return all;
}

const short = (text: string) => cut(oneLine(text), factCharactersMax).toWellFormed();

/** A data point is stored with all its values, or rejected. */
function add(
  all: Read,
  name: string,
  values: readonly DataPoint[],
  seriesOf: (value: DataPoint) => CheckedSeries,
  now: number,
): void {
  const { points, owners, names, broken } = all;
  const place = all.dataPoints;
  all.dataPoints += 1;
  names.push(name);
  if (values.length === 0) all.skipped += 1;
  const rule = values.map(brokenPoint).find((each) => each !== undefined);
  if (rule !== undefined) {
    broken.set(place, rule);
    return;
  }
  for (const each of values) {
    owners.push(place);
    points.series.push(seriesOf(each));
    points.times.push(each.timeMs === 0 ? now : each.timeMs);
    points.values.push(each.value);
  }
}

/** Stores metrics, and the entities that they are of. */
export async function exportMetrics(
  { points, models }: { points: Pick<PointKinds, "putChecked">; models: ResourceModels },
  request: ExportMetricsServiceRequest,
  call: Call,
  bytes: number,
): Promise<ExportMetricsServiceResponse> {
  const all = await read(request, call);
  const refused = await points.putChecked(call.sender, all.points, bytes);
  if (all.points.times.length > refused.size) await models.put(all.entities, call);
  for (const [place, reason] of refused) {
    const owner = all.owners[place] as number;
    if (!all.broken.has(owner)) all.broken.set(owner, reason);
  }
  call.count("refused", all.broken.size);
  call.count("skipped", all.skipped);
  call.count("stored", all.dataPoints - all.skipped - all.broken.size);
  if (all.broken.size === 0) return create(ExportMetricsServiceResponseSchema);
  const errorMessage = rejections([...all.broken].map(([place, rule]) => `${all.names[place]}: ${rule}`));
  return create(ExportMetricsServiceResponseSchema, {
    partialSuccess: { rejectedDataPoints: BigInt(all.broken.size), errorMessage },
  });
}
