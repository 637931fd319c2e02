import { hash } from "node:crypto";
import type { NewSeries, ReadPoints } from "../../metrics/point-batch.ts";
import { keptKey, kinds, ownerOf, setKey } from "../../metrics/series-key.ts";
import { found, type TenantSeries } from "../../metrics/series-memory.ts";
import { cut, lines, oneLine } from "../foreign-texts.ts";
import { brokenCount, brokenLabel, brokenMetric } from "../series-rules.ts";
import { attributeIn, jsonOf, labelText } from "./attributes.ts";
import { type DataPoint, ownLabels, shapeOf, valueNamesOf } from "./data-points.ts";
import { delimited, fieldsOf, next, type Walk } from "./fields.ts";
import {
  instruments,
  type MetricPart,
  type PointKind,
  pointSchemas,
  type ScopePart,
  scopeNameOf,
  textsOf,
} from "./metric-parts.ts";
import { entityOf, resourceDigest } from "./resource-parts.ts";

/** Finds or makes the series of a request, which are remembered by the bytes that name them: their labels are resolved once. */
export interface PointNames {
  /** Begins the points of a metric. @throws code 3 */
  begin(part: MetricPart): void;
  /**
   * Adds the values of a data point that are finite; returns how many they are, or the rule that the data point breaks.
   * @throws code 3, code 8
   */
  add(points: ReadPoints, point: DataPoint, values: readonly number[], timeMs: number): number | string;
}

/** Finds the series of a request. */
interface Naming {
  readonly known: TenantSeries;
  readonly walk: Walk;
  readonly nowMs: number;
  /** Takes memory for this many series that are made. @throws code 8 when there is no room */
  reserve(series: number): void;
}

const factCharactersMax = 1024;
/** Bytes of a metric's head, beyond which it is looked up by its texts: what they may have is less. */
const headBytesMax = 8192;
const short = (text: string) => cut(text, factCharactersMax).toWellFormed();
const kindNumbers = Object.fromEntries(Object.keys(pointSchemas).map((kind, i) => [kind, i])) as Record<
  PointKind,
  number
>;

/** Bytes of attributes, beyond which a digest stands for them: each value of a data point looks them up. */
const attributesBytesMax = 1024;
const noTag = Buffer.alloc(1);
const shortKey = (attributes: Uint8Array) =>
  attributes.length <= attributesBytesMax ? attributes : Buffer.concat([noTag, hash("sha256", attributes, "buffer")]);

/** A metric of a request. */
interface Metric {
  readonly part: MetricPart;
  readonly id: number;
}

/** Begins a request. */
export function pointNames({ known, walk, nowMs, reserve }: Naming): PointNames {
  let metric: Metric;
  /** The shape of the point before, and the number of the metric with it. */
  let [lastShape, shapeId] = ["", 0];
  /** The names of a data point's values; points that follow each other often have the same. */
  let last: { metric: Metric; id: number; all: ReturnType<typeof namesMade> } | undefined;

  /** The metric's own number, or the one that it has with the shape of a point. */
  function idWith(shape: string): number {
    if (shape === "") return metric.id;
    if (shape === lastShape) return shapeId;
    setKey(Buffer.from(shape));
    [lastShape, shapeId] = [shape, known.idOf(ownerOf(kinds.shape, metric.id))];
    return shapeId;
  }

  /** The series of a data point's values; a text: the rule that they break. */
  function make(point: DataPoint, id: number): NewSeries[] | string {
    const { kind, of } = metric.part;
    const scope = scopeNameOf(of.scope, walk);
    const labels = labelsOf(point.attributes, scope, walk, ownLabels[kind]);
    if (typeof labels === "string") return labels;
    if (last?.metric !== metric || last.id !== id) last = { metric, id, all: namesMade(metric.part, point, walk) };
    const { names, broken } = last.all;
    const rule =
      broken ?? (ownLabels[kind] === undefined ? undefined : brokenCount(Object.keys(labels ?? {}).length + 1));
    if (rule !== undefined) return rule;
    reserve(names.length);
    const { dimensions } = entityOf(of.resource, walk);
    const kept = keptKey(0);
    return names.map(({ own, value, ...rest }, rank) => ({
      ...rest,
      dimensions,
      labels: own === undefined ? labels : { ...labels, [own]: value },
      key: { ...kept, owner: ownerOf(kinds.point, id, rank) },
    }));
  }

  return {
    begin(part) {
      const { head: sent, kind, instrument, of } = part;
      const owner = ownerOf(
        kinds.metric,
        scopeId(of, { known, walk }),
        kindNumbers[kind] * 16 + instruments.indexOf(instrument),
      );
      setKey(sent.length <= headBytesMax ? sent : Buffer.from(JSON.stringify(textsOf(sent, walk))));
      metric = { part, id: known.idOf(owner, () => textsOf(sent, walk)) };
      lastShape = "";
    },
    add(points, point, values, timeMs) {
      const id = idWith(shapeOf(point, metric.part.kind));
      let made: NewSeries[] | undefined;
      let added = 0;
      setKey(shortKey(point.attributes));
      for (let rank = 0; rank < values.length; rank++) {
        const value = values[rank] as number;
        if (!Number.isFinite(value)) continue;
        if (known.find(ownerOf(kinds.point, id, rank), nowMs)) {
          points.series.push(found.segment);
          points.entries.push(found.entry);
        } else {
          const all = made ?? make(point, id);
          if (typeof all === "string") return all;
          made = all;
          points.series.push(all[rank] as NewSeries);
          points.entries.push(0);
        }
        points.times.push(timeMs);
        points.values.push(value);
        added += 1;
      }
      return added;
    },
  };
}

/** The number of a scope, by its resource and name. */
function scopeId(of: ScopePart, { known, walk }: Pick<Naming, "known" | "walk">): number {
  if (of.id !== undefined) return of.id;
  setKey(resourceDigest(of.resource));
  const resourceId = known.idOf(ownerOf(kinds.resource), () => entityOf(of.resource, walk));
  setKey(Buffer.from(scopeNameOf(of.scope, walk)));
  of.id = known.idOf(ownerOf(kinds.scope, resourceId));
  return of.id;
}

/** Values that count something else than the metric's unit. */
const counting: ReadonlySet<string> = new Set([".count", ".bucket"]);

/** Names a value of a metric. */
interface SeriesName {
  readonly metric: string;
  readonly units: string;
  readonly description: string;
  readonly instrument: string;
  /** The label by which it is another one than the values beside it. */
  readonly own: string | undefined;
  readonly value: string;
}

/** The names of a data point's values, in their order, and the rule that they break. */
function namesMade(
  { head, kind, instrument }: MetricPart,
  point: DataPoint,
  walk: Walk,
): { names: SeriesName[]; broken: string | undefined } {
  const { name, ...texts } = textsOf(head, walk);
  const [unit, description] = [short(oneLine(texts.unit)), short(lines(texts.description))];
  const names = valueNamesOf(point, kind).map(([suffix, own, value = ""]): SeriesName => {
    const units = counting.has(suffix) ? "" : unit;
    return { metric: name === "" ? "" : `${name}${suffix}`, units, description, instrument, own, value };
  });
  let broken: string | undefined;
  for (const { metric } of names) broken ??= brokenMetric(metric);
  return { names, broken };
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
    const text = labelText(jsonOf(attribute, labelCharactersMax));
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
