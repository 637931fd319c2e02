import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  CompactMetricSchema,
  type Metric,
  MetricSchema,
  TaggedMetricSchema,
} from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  type PutMetricRequest,
  PutMetricRequestSchema,
  type PutMetricsRequest,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { Config } from "../config/settings.ts";
import { paced } from "../event-loop.ts";
import { presentLabels } from "../metrics/labels.ts";
import { batchBuilder, type NewSeries, type ReadPoints } from "../metrics/point-batch.ts";
import { kinds } from "../metrics/series-key.ts";
import { found, type Segment, type TenantSeries } from "../metrics/series-memory.ts";
import { type NameSetter, nameSetter } from "../metrics/series-names.ts";
import type { MetricStore } from "../metrics/store.ts";
import { batchBytesMax } from "./ingest-queue.ts";
import { type Failed, type ItemRules, sift, timesTaken } from "./item.ts";
import { newMax, pointLane, pointsMax } from "./point-lane.ts";
import { gather, type PutOutcome, type PutPart, type Sender } from "./put.ts";
import { putReadPoints } from "./put-points.ts";
import { decodePoint, emptyList, formKey, type ReadList, type ScannedPoints, scannedPointsOf } from "./read-points.ts";

/** How points are taken. */
export interface PointKinds {
  /** Stores those of a stream, part by part. */
  put: PutPart<PutMetricRequest>;
  /** Stores the lists of a request, one after the other. */
  putAll(sender: Sender, request: PutMetricsRequest, bytes: number): Promise<PutOutcome<PutMetricRequest>>;
  /** What is known of a tenant's series. */
  known(tenantId: string): TenantSeries;
  /** Stores points that were no messages of ours; returns the places of those that were not stored, and why. */
  putChecked(sender: Sender, points: ReadPoints, bytes: number): Promise<Map<number, string>>;
}

type Bounds = Pick<Config, "modelAgeSecMax" | "aheadSecMax" | "metricRetentionSec">;
type TimeBounds = ItemRules<typeof PutMetricRequestSchema>["bounds"];
type Form = "compact" | "tagged" | "canonical";
type PathOf = (i: number) => string;

/** Points of one form, some of which have been read into columns. */
interface Points {
  count: number;
  /** Those whose series are known. */
  columns: ReadList;
  /** The point as a message, wrapped as a stream has it. */
  message(i: number): PutMetricRequest;
  /** Its bytes, when it came in binary. */
  bytesOf?(i: number): Uint8Array;
}

const emptyMetric = () => ({ case: "canonical" as const, value: create(MetricSchema) });

/** The point that a wrapper holds; an empty one holds an empty point. */
export const pointOf = ({ metric }: PutMetricRequest) => (metric.case === undefined ? emptyMetric() : metric);

const schemas = { canonical: MetricSchema, tagged: TaggedMetricSchema, compact: CompactMetricSchema };

const noLabels = {};
const text = (value: unknown) => (typeof value === "string" ? value : "");

/** The series of a point. @param bytes its own, where it came in binary */
function toSeries(request: PutMetricRequest, bytes: Uint8Array | undefined): NewSeries {
  const { case: form, value } = pointOf(request);
  const dimensions = form === "tagged" ? value.tags : (value as Metric).dimensions;
  const labels = form === "canonical" ? value.labels : noLabels;
  const metadata: JsonObject | undefined = form === "canonical" ? value.metadataFields : undefined;
  return {
    metric: (value as Metric).metric,
    dimensions,
    labels: presentLabels(labels),
    units: text(metadata?.units),
    description: text(metadata?.description),
    instrument: "",
    key: bytes && formKey(bytes, Object.keys(dimensions).length + Object.keys(labels).length),
  };
}

const pointRules = (bounds: TimeBounds): ItemRules<typeof PutMetricRequestSchema> => ({
  schema: PutMetricRequestSchema,
  bounds,
  within(request) {
    const { case: form, value } = pointOf(request);
    return { schema: schemas[form], item: value };
  },
  more: ({ metric }, path) =>
    metric.case === "compact"
      ? [{ path: `${path}.id`, rule: "names no metric: there is no registry here; send name and dimensions" }]
      : [],
});

/** Sets `key` to the names of a point that holds to all rules if a point with the same did; false: it has to be checked. */
function setNamesOf(setNames: NameSetter, request: PutMetricRequest, [firstMs, lastMs]: [number, number]): boolean {
  const { case: form, value: point } = pointOf(request);
  if (form === "compact" || (form === "canonical" && point.metadataFields !== undefined)) return false;
  const { metric, timestamp, value } = point;
  const dimensions = form === "tagged" ? point.tags : point.dimensions;
  if (value === undefined || !Number.isFinite(value) || timestamp === undefined) return false;
  if (!(Number(timestamp) >= firstMs && Number(timestamp) <= lastMs)) return false;
  return setNames({ metric, dimensions, labels: form === "tagged" ? noLabels : point.labels });
}

/** Checks points one by one: those of a form that is known need no more than a look at their times. */
function pointChecker(store: MetricStore, bounds: TimeBounds) {
  const rules = pointRules(bounds);

  /**
   * The points from one place to another, or until enough of them are new: those whose series are known into columns, messages of
   * the others, and failures. Returns how far it has come.
   */
  return async function check(
    { tenantId }: Sender,
    points: Points,
    [from, max]: [number, number],
    pathOf: PathOf,
    now: number,
  ) {
    const taken = timesTaken(bounds, now);
    const messages = new Map<number, PutMetricRequest>();
    const { segments, entries, times, values } = points.columns;
    const known = store.memory.of(tenantId);
    const setNames = nameSetter();
    const pace = paced(() => {}, tenantId);
    let to = from;
    for (; to < max && messages.size < newMax; to++) {
      const timeMs = times[to] as number;
      if (segments[to] !== undefined && timeMs >= taken[0] && timeMs <= taken[1]) continue;
      const wait = pace();
      if (wait !== undefined) await wait;
      const message = points.message(to);
      if (points.bytesOf === undefined && setNamesOf(setNames, message, taken) && known.find(kinds.names, now)) {
        const { timestamp, value } = pointOf(message).value;
        segments[to] = found.segment;
        entries[to] = found.entry;
        times[to] = Number(timestamp);
        values[to] = value as number;
      } else messages.set(to, message);
    }
    const places = [...messages.keys()];
    const checks = { nowMs: now, pace };
    const { failed } = await sift(rules, [...messages.values()], (index) => pathOf(places[index] as number), checks);
    return { to, messages, failed: failed.map((each) => ({ ...each, index: places[each.index] as number })) };
  };
}

/** Points: `store` is where they go. */
export function pointKinds(config: Bounds, nowMs: () => number, store: MetricStore): PointKinds {
  const lane = pointLane(store, nowMs);
  const bounds = {
    ageSecMax: Math.min(config.modelAgeSecMax, config.metricRetentionSec),
    aheadSecMax: config.aheadSecMax,
  };
  const check = pointChecker(store, bounds);

  /** Checks and stores the points from one place to another, or a part of them that one transaction takes; answers where it ends. */
  async function putSome(
    sender: Sender,
    points: Points,
    [from, max]: [number, number],
    { each, pathOf, first }: { each: number; pathOf: PathOf; first: boolean },
  ): Promise<{ to: number; failed: Failed<PutMetricRequest>[] }> {
    const now = sender.nowMs();
    const { to, messages, failed } = await check(sender, points, [from, max], pathOf, now);
    const bad = new Set(failed.map(({ index }) => index));
    const builder = batchBuilder(store.memory.of(sender.tenantId), sender.tenantId, to - from, now);
    const { segments, entries, times, values } = points.columns;
    const placed: number[] = [];
    for (let i = from; i < to; i++) {
      if (bad.has(i)) continue;
      placed.push(i);
      const message = messages.get(i);
      if (message === undefined)
        builder.addKnown(segments[i] as Segment, entries[i] as number, times[i] as number, values[i] as number);
      else {
        const { timestamp, value } = pointOf(message).value;
        builder.add(toSeries(message, points.bytesOf?.(i)), Number(timestamp), value as number);
      }
    }
    if (placed.length === 0) return { to, failed };
    for (const [place, reason] of await lane.put(sender, builder.batch(), each * (to - from), first)) {
      const index = placed[place] as number;
      failed.push({ index, item: messages.get(index) ?? points.message(index), error: `${pathOf(index)}: ${reason}` });
    }
    return { to, failed: failed.sort((a, b) => a.index - b.index) };
  }

  return {
    // A part of a stream has no more messages than may be new.
    async put(sender, { messages, bytes }, pathOf, first) {
      const each = bytes / Math.max(1, messages.length);
      return (await putSome(sender, ofMessages(messages), [0, messages.length], { each, pathOf, first })).failed;
    },
    async putAll(sender, request, bytes) {
      const lists = listsOf(request);
      const count = lists.reduce((sum, { points }) => sum + points.count, 0);
      const each = bytes / Math.max(1, count);
      const size = Math.max(1, Math.min(pointsMax, Math.floor(batchBytesMax / Math.max(1, each))));
      const { outcome, add } = gather<PutMetricRequest>(request.detailedResponse ? count : 0);
      for (const { list, points } of lists) {
        const pathOf = (i: number) => `${list}[${i}]`;
        for (let from = 0; from < points.count; ) {
          const max = Math.min(points.count, from + size);
          const { to, failed } = await putSome(sender, points, [from, max], { each, pathOf, first: from === 0 });
          add(to - from, failed);
          from = to;
        }
      }
      return outcome;
    },
    known: store.memory.of,
    putChecked: (sender, points, bytes) => putReadPoints({ store, lane, bounds }, sender, points, bytes),
  };
}

const ofMessages = (messages: readonly PutMetricRequest[]): Points => ({
  count: messages.length,
  columns: emptyList(),
  message: (i) => messages[i] as PutMetricRequest,
});

const wrapped = (form: Form, value: unknown) => ({ metric: { case: form, value } }) as PutMetricRequest;

/** The lists of a request in the order in which they are stored. */
function listsOf(request: PutMetricsRequest): { list: string; points: Points }[] {
  const { compactMetrics, taggedMetrics, metrics } = request;
  const read = scannedPointsOf(request);
  return [
    { list: "compactMetrics", points: ofMessages(compactMetrics.map((point) => wrapped("compact", point))) },
    { list: "taggedMetrics", points: pointsOf("tagged", taggedMetrics, read) },
    { list: "metrics", points: pointsOf("canonical", metrics, read) },
  ];
}

function pointsOf(form: "tagged" | "canonical", messages: readonly unknown[], read: ScannedPoints | undefined): Points {
  if (read === undefined) return ofMessages(messages.map((point) => wrapped(form, point)));
  const list = read.lists[form];
  const { starts, ends, segments } = list;
  // Those that were read are not among the messages.
  const places = new Int32Array(segments.length);
  let missing = 0;
  for (let i = 0; i < segments.length; i++) {
    places[i] = missing;
    if (segments[i] === undefined) missing += 1;
  }
  return {
    count: segments.length,
    columns: list,
    message: (i) =>
      wrapped(
        form,
        segments[i] === undefined ? messages[places[i] as number] : decodePoint(schemas[form], read.bytes, list, i),
      ),
    bytesOf: (i) => read.bytes.subarray(starts[i], ends[i]),
  };
}
