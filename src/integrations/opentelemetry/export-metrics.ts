import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
  type ExportMetricsServiceResponse,
  ExportMetricsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import type { PointKinds } from "../../receiver/points.ts";
import type { CheckedPoints } from "../../receiver/put-points.ts";
import { refusalOf } from "../../wire/status.ts";
import type { Call } from "../integration.ts";
import { readPoint, valuesOf } from "./data-points.ts";
import type { KnownSeries } from "./known-series.ts";
import type { MetricPart } from "./metric-parts.ts";
import { rejections } from "./rejections.ts";
import type { ResourceEntity } from "./resource.ts";
import type { ResourceModels } from "./resource-models.ts";

/** What exports of metrics are stored with. */
export interface MetricsExport {
  points: Pick<PointKinds, "putChecked">;
  models: ResourceModels;
  series: KnownSeries;
  /** Data points that a request may have. */
  pointsMax: number;
}

/** Values that may be made of as many data points: a histogram has a series for each bucket. */
const valuesEach = 4;
/** Memory of a value, and of a series that is new, about. */
const [valueBytes, seriesBytes] = [64, 1000];

interface Read {
  points: CheckedPoints;
  entities: Set<ResourceEntity>;
  /** Of each value, the data point that it is of. */
  owners: number[];
  names: string[];
  skipped: number;
  broken: Map<number, string>;
}

/** Counts what a request holds, and reserves memory for it. @throws code 8 */
function tally(pointsMax: number, { reserve }: Call) {
  const partsMax = pointsMax * valuesEach;
  let [points, parts, reserved] = [0, 0, 0];
  return {
    point() {
      points += 1;
      if (points <= pointsMax) return;
      throw refusalOf(
        Code.ResourceExhausted,
        413,
        `a request may have at most ${pointsMax} data points; send fewer at once`,
      );
    },
    /** Values, and what there is beside data points. */
    parts(more: number) {
      parts += more;
      if (parts > partsMax)
        throw refusalOf(
          Code.ResourceExhausted,
          413,
          `a request may have at most ${partsMax} values, metrics and resources; send fewer at once`,
        );
      if (parts < reserved) return;
      reserve(1024 * valueBytes);
      reserved += 1024;
    },
  };
}

/** All values of a request, by data points. @throws code 3 where it is no Protobuf, code 8 where it holds too much */
async function read(parts: Iterable<MetricPart | undefined>, { series, pointsMax }: MetricsExport, call: Call) {
  const now = Math.floor(call.nowMs());
  const all: Read = {
    points: { series: [], times: [], values: [] },
    entities: new Set(),
    owners: [],
    names: [],
    skipped: 0,
    broken: new Map(),
  };
  const count = tally(pointsMax, call);
  for (const part of parts) {
    count.parts(1);
    const wait = call.pace();
    if (wait !== undefined) await wait;
    if (part === undefined) continue;
    const metric = series.metric(call.tenantId, part);
    all.entities.add(metric.entity);
    for (const bytes of part.points()) {
      const wait = call.pace();
      if (wait !== undefined) await wait;
      count.point();
      const place = all.names.push(metric.name) - 1;
      const point = readPoint(bytes, part.kind);
      if (!point.recorded) {
        all.skipped += 1;
        continue;
      }
      const values = valuesOf(point, part.kind);
      count.parts(values.length);
      const resolved = series.resolved();
      const own = series.seriesOf(metric, part, point);
      call.reserve((series.resolved() - resolved) * seriesBytes);
      const rule = typeof own === "string" ? own : values.every(Number.isFinite) ? undefined : notFinite;
      if (rule !== undefined || typeof own === "string") {
        all.broken.set(place, rule as string);
        continue;
      }
      // A data point is stored with all its values, or rejected.
      for (const [i, value] of values.entries()) {
        all.owners.push(place);
        all.points.series.push(own[i] as (typeof own)[number]);
        all.points.times.push(point.timeMs === 0 ? now : point.timeMs);
        all.points.values.push(value);
      }
    }
  }
  return all;
}

const notFinite = "the value must be finite";

/** Stores metrics, and the entities that they are of. */
export async function exportMetrics(
  to: MetricsExport,
  parts: Iterable<MetricPart | undefined>,
  call: Call,
  bytes: number,
): Promise<ExportMetricsServiceResponse> {
  const { points, entities, owners, names, skipped, broken } = await read(parts, to, call);
  // Models are the same when they are sent again: whoever hears that they failed must not have stored points.
  if (points.times.length > 0) await to.models.put([...entities], call);
  const refused = await to.points.putChecked(call.sender, points, bytes);
  for (const [place, reason] of refused) {
    const owner = owners[place] as number;
    if (!broken.has(owner)) broken.set(owner, reason);
  }
  call.count("refused", broken.size);
  call.count("skipped", skipped);
  call.count("stored", names.length - skipped - broken.size);
  if (broken.size === 0) return create(ExportMetricsServiceResponseSchema);
  const errorMessage = rejections([...broken].map(([place, rule]) => `${names[place]}: ${rule}`));
  return create(ExportMetricsServiceResponseSchema, {
    partialSuccess: { rejectedDataPoints: BigInt(broken.size), errorMessage },
  });
}
