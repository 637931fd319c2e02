import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
  type ExportMetricsServiceResponse,
  ExportMetricsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { noPoints, type ReadPoints } from "../../metrics/point-batch.ts";
import type { PointKinds } from "../../receiver/points.ts";
import { refusalOf } from "../../wire/status.ts";
import type { OperationCall } from "../integration.ts";
import { readPoint, valuesOf } from "./data-points.ts";
import type { Walk } from "./fields.ts";
import type { Identities } from "./identities.ts";
import { type MetricPart, partsOfBytes, textsOf } from "./metric-parts.ts";
import { pointNames } from "./point-names.ts";
import { rejections } from "./rejections.ts";
import type { ResourceModels } from "./resource-models.ts";
import type { ResourcePart } from "./resource-parts.ts";

/** What exports of metrics are stored with. */
export interface MetricsExport {
  points: Pick<PointKinds, "putChecked" | "known">;
  models: ResourceModels;
  identities: Identities;
  /** Data points that a request may have. */
  pointsMax: number;
}

/** Values that may be made of as many data points: a histogram has a series for each bucket. */
const valuesEach = 4;
/** Memory of a value, and of a series that is new, about. */
const [valueBytes, seriesBytes] = [64, 200];

interface Read {
  points: ReadPoints;
  resources: Set<ResourcePart>;
  /** Of each value, the data point that it is of. */
  owners: number[];
  /** The metric of each data point. */
  metrics: MetricPart[];
  skipped: number;
  broken: Map<number, string>;
  /** Data points that are stored without those of their values that are not finite. */
  lacking: Set<number>;
}

/** Counts what a request holds, and reserves memory for it. @throws code 8 */
function tally(pointsMax: number, { reserve }: OperationCall) {
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
async function read(
  body: Uint8Array,
  { points, pointsMax, identities }: MetricsExport,
  call: OperationCall,
  walk: Walk,
) {
  const now = Math.floor(call.nowMs());
  const all: Read = {
    points: noPoints(),
    resources: new Set(),
    owners: [],
    metrics: [],
    skipped: 0,
    broken: new Map(),
    lacking: new Set(),
  };
  const count = tally(pointsMax, call);
  const reserve = (series: number) => call.reserve(series * seriesBytes);
  const names = pointNames({ known: points.known(call.tenantId), walk, nowMs: now, reserve });
  for (const part of partsOfBytes(body, walk)) {
    count.parts(1);
    const wait = call.pace();
    if (wait !== undefined) await wait;
    if (part === undefined) continue;
    const settling = identities.settle(part.of.resource, call, walk);
    if (settling !== undefined) await settling;
    names.begin(part);
    all.resources.add(part.of.resource);
    for (const bytes of part.points()) {
      const wait = call.pace();
      if (wait !== undefined) await wait;
      if (bytes === undefined) continue;
      count.point();
      const place = all.metrics.push(part) - 1;
      const point = readPoint(bytes, part.kind, walk);
      if (!point.recorded) {
        all.skipped += 1;
        continue;
      }
      if (point.broken !== undefined) {
        all.broken.set(place, point.broken);
        continue;
      }
      const values = valuesOf(point, part.kind);
      count.parts(values.length);
      const added = names.add(all.points, point, values, point.timeMs === 0 ? now : point.timeMs);
      if (typeof added === "string") all.broken.set(place, added);
      else if (added === 0) all.broken.set(place, "the value must be finite");
      else if (added < values.length) all.lacking.add(place);
      for (let i = 0; typeof added === "number" && i < added; i++) all.owners.push(place);
    }
  }
  return all;
}

const passedOver = "values that are not finite are passed over, the rest of the data point is stored";

/** Stores metrics, and the entities that they are of. @throws code 3 where it is no Protobuf, code 8 where it holds too much */
export async function exportMetrics(
  to: MetricsExport,
  body: Uint8Array,
  call: OperationCall,
  walk: Walk,
): Promise<ExportMetricsServiceResponse> {
  const { points, resources, owners, metrics, skipped, broken, lacking } = await read(body, to, call, walk);
  // Models are the same when they are sent again: whoever hears that they failed must not have stored points.
  if (points.times.length > 0) await to.models.put(resources, call, walk);
  const refused = await to.points.putChecked(call.sender, points, body.length);
  for (const [place, reason] of refused) {
    const owner = owners[place] as number;
    if (!broken.has(owner)) broken.set(owner, reason);
  }
  call.count("refused", broken.size);
  call.count("skipped", skipped);
  call.count("stored", metrics.length - skipped - broken.size);
  const mistakes = rejections();
  const nameOf = (place: number) => textsOf((metrics[place] as MetricPart).head, walk).name;
  for (const [place, rule] of broken) mistakes.add(nameOf(place), rule);
  for (const place of lacking) if (!broken.has(place)) mistakes.add(nameOf(place), passedOver);
  if (mistakes.count === 0) return create(ExportMetricsServiceResponseSchema);
  return create(ExportMetricsServiceResponseSchema, {
    partialSuccess: { rejectedDataPoints: BigInt(broken.size), errorMessage: mistakes.text() },
  });
}
