import { fromBinary } from "@bufbuild/protobuf";
import { InstrumentationScopeSchema, type KeyValue } from "#gen/opentelemetry/proto/common/v1/common_pb.ts";
import { ResourceSchema } from "#gen/opentelemetry/proto/resource/v1/resource_pb.ts";
import type { Notes } from "../../metrics/notes.ts";
import type { CheckedSeries } from "../../receiver/put-points.ts";
import { countBinary } from "../../wire/count-binary.ts";
import type { CountLimits } from "../../wire/message-limits.ts";
import { cut, oneLine } from "../foreign-texts.ts";
import { copyOf, hashOf, knownBytes } from "../known-bytes.ts";
import { recentMap } from "../recent-map.ts";
import { brokenCount, brokenLabel, brokenMetric } from "../series-rules.ts";
import { textOf } from "./attributes.ts";
import { brokenBuckets, type DataPoint, ownLabels, shapeOf, valueNamesOf } from "./data-points.ts";
import { decoded, latin1 } from "./fields.ts";
import { instruments, type MetricPart, pointSchemas, type ScopePart, textsOf } from "./metric-parts.ts";
import { entityOfResource, type ResourceEntity } from "./resource.ts";

/** A metric of a resource and scope that was named before. */
export interface KnownMetric {
  /** Its data points' series are remembered under it. */
  readonly id: number;
  readonly entity: ResourceEntity;
  readonly name: string;
  readonly scope: string;
  readonly facts: Notes;
}

/** The series that requests name, remembered by the bytes that name them: their labels are resolved once. */
export interface KnownSeries {
  metric(tenantId: string, part: MetricPart): KnownMetric;
  /** Those of the values that are made of a data point, in their order; a text: the rule that it breaks. @throws code 3 or 8 */
  seriesOf(metric: KnownMetric, part: MetricPart, point: DataPoint): readonly CheckedSeries[] | string;
  /** How often series were made of their labels. */
  resolved(): number;
}

const characters = { resources: 16 * 2 ** 20, metrics: 32 * 2 ** 20, series: 128 * 2 ** 20 };
const [metricBytes, seriesBytes] = [500, 1000];
const factCharactersMax = 1024;
const short = (text: string) => cut(oneLine(text), factCharactersMax).toWellFormed();

/** A scope of a resource, of a tenant. */
interface Place {
  readonly id: number;
  readonly entity: ResourceEntity;
  readonly scope: string;
}

const kindNumbers = Object.fromEntries(Object.keys(pointSchemas).map((kind, i) => [kind, i])) as Record<string, number>;
const hashAll = (bytes: Uint8Array) =>
  hashOf(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, bytes.byteLength);

/** Begins without any. */
export function knownSeries(limits: CountLimits): KnownSeries {
  const places = recentMap<Place>(characters.resources, 4000);
  const metrics = knownBytes<KnownMetric>(characters.metrics);
  const series = knownBytes<readonly CheckedSeries[]>(characters.series);
  const placesOfRequests = new WeakMap<ScopePart, Place>();
  let ids = 0;
  let resolved = 0;

  function placeOf(tenantId: string, of: ScopePart): Place {
    const before = placesOfRequests.get(of);
    if (before !== undefined) return before;
    const { resource, scope } = of;
    const key = [tenantId, resource.length, latin1(resource), latin1(scope)].join(" ");
    let place = places.get(key);
    if (place === undefined) {
      countBinary(ResourceSchema, resource, limits);
      const entity = entityOfResource(decoded(() => fromBinary(ResourceSchema, resource)));
      countBinary(InstrumentationScopeSchema, scope, limits);
      place = { id: ids++, entity, scope: decoded(() => fromBinary(InstrumentationScopeSchema, scope)).name };
      places.set(key, place);
    }
    placesOfRequests.set(of, place);
    return place;
  }

  return {
    resolved: () => resolved,
    metric(tenantId, { head, kind, instrument, of }) {
      const place = placeOf(tenantId, of);
      const owner = (place.id * 8 + (kindNumbers[kind] as number)) * 16 + instruments.indexOf(instrument);
      const hash = hashAll(head) ^ Math.imul(owner, 0x85ebca6b);
      let found = metrics.find(owner, hash, head, 0, head.length);
      if (found === undefined) {
        const { name, unit, description } = textsOf(head);
        const facts = { units: short(unit), description: short(description), instrument };
        found = { id: ids++, name, entity: place.entity, scope: place.scope, facts };
        metrics.set(owner, hash, copyOf(head, 0, head.length), found, metricBytes);
      }
      return found;
    },
    seriesOf(metric, { kind }, point) {
      const { attributes } = point;
      const shape = shapeOf(point, kind);
      const owner = shape === "" ? metric.id : [metric.id, shape].join(" ");
      const hash = hashAll(attributes) ^ Math.imul(metric.id, 0x85ebca6b);
      const known = series.find(owner, hash, attributes, 0, attributes.length);
      if (known !== undefined) return known;
      const broken = brokenBuckets(point);
      if (broken !== undefined) return broken;
      const schema = pointSchemas[kind];
      countBinary(schema, attributes, limits);
      const labels = labelsOf(decoded(() => fromBinary(schema, attributes)).attributes, metric.scope, ownLabels[kind]);
      const made = valueNamesOf(point, kind).map(([suffix, label, value]): CheckedSeries | string => {
        const all = label === undefined ? labels : { ...labels, [label]: value as string };
        const name = metric.name === "" ? "" : `${metric.name}${suffix}`;
        return brokenNames(name, all) ?? seriesNamed(name, metric, all, counting.has(suffix));
      });
      const rule = made.find((each) => typeof each === "string");
      if (rule !== undefined) return rule as string;
      resolved += made.length;
      const weight = shape.length + made.length * seriesBytes;
      series.set(owner, hash, copyOf(attributes, 0, attributes.length), made as CheckedSeries[], weight);
      return made as CheckedSeries[];
    },
  };
}

/** Values that count something else than the metric's unit. */
const counting: ReadonlySet<string> = new Set([".count", ".bucket"]);

function seriesNamed(
  metric: string,
  { entity, facts }: KnownMetric,
  labels: Record<string, string>,
  counts: boolean,
): CheckedSeries {
  const { dimensions } = entity;
  const units = counts ? "" : facts.units;
  return { ...facts, metric, dimensions, units, labels: Object.keys(labels).length === 0 ? undefined : labels };
}

/**
 * The labels of a point: its attributes, and the name of the library that made it. `own` is the label by which its values differ:
 * an attribute of that name has a prefix, and different keys stay different.
 */
function labelsOf(attributes: readonly KeyValue[], scope: string, own?: string): Record<string, string> {
  const labels = new Map<string, string>();
  if (scope !== "") labels.set("otel.scope.name", scope);
  for (const { key, value } of attributes) {
    const text = textOf(value);
    if (key !== "" && text !== "")
      labels.set(key.replaceAll("attribute.", "") === own ? `attribute.${key}` : key, text);
  }
  return Object.fromEntries(labels);
}

/** What is wrong with a name and labels; undefined: nothing. */
function brokenNames(metric: string, labels: Record<string, string>): string | undefined {
  const names = Object.keys(labels);
  const rule = brokenMetric(metric) ?? brokenCount(names.length);
  if (rule !== undefined) return rule;
  for (const name of names) {
    const broken = brokenLabel(name, labels[name] as string);
    if (broken !== undefined) return broken;
  }
  return undefined;
}
