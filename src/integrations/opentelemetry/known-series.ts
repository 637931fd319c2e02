import type { Notes } from "../../metrics/notes.ts";
import type { NewSeries } from "../../metrics/point-batch.ts";
import { cut, oneLine } from "../foreign-texts.ts";
import { copyOf, hashOf, knownBytes } from "../known-bytes.ts";
import { brokenCount, brokenLabel, brokenMetric } from "../series-rules.ts";
import { attributeIn, jsonOf, textOf } from "./attributes.ts";
import { type DataPoint, ownLabels, shapeOf, valueNamesOf } from "./data-points.ts";
import { delimited, fieldsOf, next, type Walk } from "./fields.ts";
import type { KnownResource, ResourceFinder } from "./known-resources.ts";
import {
  instruments,
  type MetricPart,
  type PointKind,
  pointSchemas,
  type ScopePart,
  scopeNameOf,
  textsOf,
} from "./metric-parts.ts";

/** A metric of a resource and scope that was named before. */
export interface KnownMetric {
  /** Its data points' series are remembered under it. */
  readonly id: number;
  readonly dimensions: Record<string, string>;
  readonly name: string;
  readonly scope: string;
  readonly facts: Notes;
  /** About what all of this takes, bytes. */
  readonly weight: number;
}

/** The series that requests name, remembered by the bytes that name them: their labels are resolved once. */
export interface KnownSeries {
  /** @throws code 3 */
  metric(tenantId: string, part: MetricPart, walk: Walk): KnownMetric;
  /** Those of the values that are made of a data point, in their order; a text: the rule that it breaks. @throws code 3 */
  seriesOf(metric: KnownMetric, part: MetricPart, point: DataPoint, walk: Walk): readonly NewSeries[] | string;
  /** How often series were made of their labels. */
  resolved(): number;
}

/** Weighed by what the entries take with all that they refer to, though some of them share it. */
const bytesMax = { places: 16 * 2 ** 20, metrics: 32 * 2 ** 20, series: 128 * 2 ** 20 };
const [placeBytes, metricBytes, seriesBytes, valueBytes] = [400, 500, 400, 200];
const characterBytes = 2;
const factCharactersMax = 1024;
/** Bytes of a metric's head, beyond which it is remembered by its texts: what they may have is less. */
const headBytesMax = 8192;
const short = (text: string) => cut(oneLine(text), factCharactersMax).toWellFormed();

/** A scope of a resource, of a tenant. */
interface Place {
  readonly id: number;
  readonly resource: KnownResource;
  readonly scope: string;
}

const kindNumbers = Object.fromEntries(Object.keys(pointSchemas).map((kind, i) => [kind, i])) as Record<string, number>;
const hashAll = (bytes: Uint8Array) =>
  hashOf(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, bytes.byteLength);

/** Begins without any. */
export function knownSeries(resourceOf: ResourceFinder): KnownSeries {
  const places = knownBytes<Place>(bytesMax.places);
  const metrics = knownBytes<KnownMetric>(bytesMax.metrics);
  const series = knownBytes<readonly NewSeries[]>(bytesMax.series);
  const placesOfRequests = new WeakMap<ScopePart, Place>();
  let ids = 0;
  let resolved = 0;

  /** The names of a data point's values; points that follow each other often have the same. */
  let last: { metric: KnownMetric; shape: string; all: ReturnType<typeof namesMade> } | undefined;
  function namesOf(metric: KnownMetric, point: DataPoint, kind: PointKind, shape: string) {
    if (last?.metric !== metric || last.shape !== shape) last = { metric, shape, all: namesMade(metric, point, kind) };
    return last.all;
  }

  function placeOf(tenantId: string, of: ScopePart, walk: Walk): Place {
    const before = placesOfRequests.get(of);
    if (before !== undefined) return before;
    const resource = resourceOf(tenantId, of.resource, walk);
    const scope = scopeNameOf(of.scope, walk);
    const name = Buffer.from(scope);
    const hash = hashAll(name) ^ Math.imul(resource.id, 0x85ebca6b);
    let place = places.find(resource.id, hash, name, 0, name.length);
    if (place === undefined) {
      place = { id: ids++, resource, scope };
      const weight = placeBytes + scope.length * characterBytes + resource.weight;
      places.set(resource.id, hash, copyOf(name, 0, name.length), place, weight);
    }
    placesOfRequests.set(of, place);
    return place;
  }

  return {
    resolved: () => resolved,
    metric(tenantId, { head: sent, kind, instrument, of }, walk) {
      const { id, resource, scope } = placeOf(tenantId, of, walk);
      const owner = (id * 8 + (kindNumbers[kind] as number)) * 16 + instruments.indexOf(instrument);
      const head = sent.length <= headBytesMax ? sent : Buffer.from(JSON.stringify(textsOf(sent, walk)));
      const hash = hashAll(head) ^ Math.imul(owner, 0x85ebca6b);
      let found = metrics.find(owner, hash, head, 0, head.length);
      if (found === undefined) {
        const { name, unit, description } = textsOf(sent, walk);
        const facts = { units: short(unit), description: short(description), instrument };
        const characters = name.length + scope.length + facts.units.length + facts.description.length;
        const weight = metricBytes + characters * characterBytes + resource.weight;
        found = { id: ids++, name, dimensions: resource.dimensions, scope, facts, weight };
        metrics.set(owner, hash, copyOf(head, 0, head.length), found, weight);
      }
      return found;
    },
    seriesOf(metric, { kind }, point, walk) {
      const { attributes } = point;
      const shape = shapeOf(point, kind);
      const owner = shape === "" ? metric.id : [metric.id, shape].join(" ");
      const hash = hashAll(attributes) ^ Math.imul(metric.id, 0x85ebca6b);
      const known = series.find(owner, hash, attributes, 0, attributes.length);
      if (known !== undefined) return known;
      const labels = labelsOf(attributes, metric.scope, walk, ownLabels[kind]);
      if (typeof labels === "string") return labels;
      const { names, broken } = namesOf(metric, point, kind, shape);
      const rule =
        broken ?? (ownLabels[kind] === undefined ? undefined : brokenCount(Object.keys(labels ?? {}).length + 1));
      if (rule !== undefined) return rule;
      const made = names.map((each) => seriesNamed(each, metric, labels));
      resolved += made.length;
      const characters = shape.length + attributes.length;
      const weight = seriesBytes + made.length * valueBytes + characters * characterBytes + metric.weight;
      series.set(owner, hash, copyOf(attributes, 0, attributes.length), made, weight);
      return made;
    },
  };
}

/** Values that count something else than the metric's unit. */
const counting: ReadonlySet<string> = new Set([".count", ".bucket"]);

/** What a value of a metric is called. */
interface SeriesName {
  readonly metric: string;
  readonly units: string;
  /** The label by which it is another one than the values beside it. */
  readonly own: string | undefined;
  readonly value: string;
}

/** The names of a data point's values, in their order, and the rule that they break. */
function namesMade(
  { name, facts }: KnownMetric,
  point: DataPoint,
  kind: PointKind,
): { names: SeriesName[]; broken: string | undefined } {
  const names = valueNamesOf(point, kind).map(([suffix, own, value = ""]): SeriesName => {
    const units = counting.has(suffix) ? "" : facts.units;
    return { metric: name === "" ? "" : `${name}${suffix}`, units, own, value };
  });
  let broken: string | undefined;
  for (const { metric } of names) broken ??= brokenMetric(metric);
  return { names, broken };
}

function seriesNamed(
  { metric, units, own, value }: SeriesName,
  { dimensions, facts: { description, instrument } }: KnownMetric,
  labels: Record<string, string> | undefined,
): NewSeries {
  const all = own === undefined ? labels : { ...labels, [own]: value };
  return { metric, dimensions, labels: all, units, description, instrument };
}

/** Characters of a label's value that are read: none may be longer. */
const labelCharactersMax = 1024;

/**
 * The labels of a point: its attributes, and the name of the library that made it; a text: the rule that they break. `own` is
 * the label by which its values differ: an attribute of that name has a prefix, and different keys stay different.
 */
function labelsOf(
  attributes: Uint8Array,
  scope: string,
  walk: Walk,
  own?: string,
): Record<string, string> | undefined | string {
  const labels = new Map<string, string>();
  if (scope !== "") labels.set("otel.scope.name", scope);
  for (const all = fieldsOf(attributes, walk); next(all); ) {
    if (all.type !== delimited) continue;
    const attribute = attributeIn(all);
    const { key } = attribute;
    const text = textOf(jsonOf(attribute, labelCharactersMax));
    if (key === "" || text === "") continue;
    labels.set(key.replaceAll("attribute.", "") === own ? `attribute.${key}` : key, text);
  }
  const rule = brokenCount(labels.size);
  if (rule !== undefined) return rule;
  for (const [name, value] of labels) {
    const broken = brokenLabel(name, value);
    if (broken !== undefined) return broken;
  }
  return labels.size === 0 ? undefined : Object.fromEntries(labels);
}
