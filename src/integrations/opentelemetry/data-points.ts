import {
  DataPointFlags,
  SummaryDataPoint_ValueAtQuantileSchema,
} from "#gen/opentelemetry/proto/metrics/v1/metrics_pb.ts";
import { delimited, type Fields, fieldsOf, fieldsWithin, fixed64, next, valueMs, varint, type Walk } from "./fields.ts";
import { type PointKind, pointSchemas } from "./metric-parts.ts";

/** What a data point says, of whichever kind. */
export interface DataPoint {
  /** The bytes of its attributes, with their tags. */
  attributes: Uint8Array;
  /** ms since the epoch; 0: the sender gave no time. */
  timeMs: number;
  /** False: it only notes that its series has ended. */
  recorded: boolean;
  value: number;
  count: number;
  sum: number | undefined;
  min: number | undefined;
  max: number | undefined;
  buckets: number[];
  bounds: number[];
  quantiles: number[];
  /** The rule that it breaks; it was not read further. */
  broken: string | undefined;
}

/** A value that is made of a data point: what follows the metric's name, and the label by which it is another than the rest. */
export type ValueName = readonly [suffix: string, label?: string, labelValue?: string];

const roles = ["attributes", "timeUnixNano", "flags", "asDouble", "asInt", "count", "sum", "min", "max"] as const;
const lists = ["bucketCounts", "explicitBounds", "quantileValues"] as const;
type Role = (typeof roles)[number] | (typeof lists)[number];

/** Attributes, buckets, bounds and quantiles that a data point may have, each. */
const listMax = 1000;
/** Its fields, exemplars and those without a meaning here among them. */
const fieldsMax = 10_000;
/** Its attributes together: more than labels within their bounds take. */
const attributeBytesMax = 256 * 1024;

const tooMany = (what: string, max = listMax) => `a data point may have at most ${max} ${what}`;

/** What the fields of each kind of data point are, by their numbers. */
const rolesOf = Object.fromEntries(
  Object.entries(pointSchemas).map(([kind, { fields }]) => {
    const known = fields.filter(({ localName }) => ([...roles, ...lists] as string[]).includes(localName));
    const byNumber: (Role | undefined)[] = [];
    for (const { number, localName } of known) byNumber[number] = localName as Role;
    return [kind, byNumber];
  }),
) as Record<PointKind, (Role | undefined)[]>;

const countAt = ({ view }: Fields, at: number) => view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
const doubleAt = ({ view }: Fields, at: number) => view.getFloat64(at, true);

/** Adds the numbers of a field that is packed, or one of them; false: they would be too many. */
function addAll(all: Fields, to: number[], read: (all: Fields, at: number) => number): boolean {
  if (to.length + (all.to - all.from) / 8 > listMax) return false;
  for (let at = all.from; at + 8 <= all.to; at += 8) to.push(read(all, at));
  return true;
}

/** Reads a data point. @throws code 3 for what is no Protobuf */
export function readPoint(bytes: Uint8Array, kind: PointKind, walk: Walk): DataPoint {
  const point: DataPoint = {
    attributes: bytes.subarray(0, 0),
    timeMs: 0,
    recorded: true,
    value: Number.NaN,
    count: 0,
    sum: kind === "summary" ? 0 : undefined,
    min: undefined,
    max: undefined,
    buckets: [],
    bounds: [],
    quantiles: [],
    broken: undefined,
  };
  const byNumber = rolesOf[kind];
  const runs: [from: number, to: number][] = [];
  const lastField = walk.fields + fieldsMax;
  let attributes = 0;
  for (const all = fieldsOf(bytes, walk); point.broken === undefined && next(all); ) {
    if (walk.fields > lastField) point.broken = tooMany("fields", fieldsMax);
    const role = byNumber[all.field];
    if (role === undefined) continue;
    if (all.type === fixed64) readNumber(point, role, all);
    else if (all.type === varint) {
      if (role === "flags") point.recorded = (all.number & DataPointFlags.NO_RECORDED_VALUE_MASK) === 0;
    } else if (all.type === delimited) {
      if (role !== "attributes") {
        readList(point, role, all);
        continue;
      }
      attributes += 1;
      if (attributes > listMax) point.broken = tooMany("attributes");
      const run = runs.at(-1);
      if (run?.[1] === all.start) run[1] = all.to;
      else runs.push([all.start, all.to]);
    }
  }
  // Bounds of no buckets say nothing.
  if (point.buckets.length === 0) point.bounds = [];
  point.broken ??= brokenBuckets(point) ?? brokenRuns(runs);
  if (point.broken !== undefined) return point;
  const pieces = runs.map(([from, to]) => bytes.subarray(from, to));
  if (pieces.length > 0) point.attributes = pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
  return point;
}

function readNumber(point: DataPoint, role: Role, all: Fields): void {
  if (role === "timeUnixNano") point.timeMs = valueMs(all);
  else if (role === "asInt") point.value = Number(all.view.getBigInt64(all.from, true));
  else if (role === "asDouble") point.value = doubleAt(all, all.from);
  else if (role === "count") point.count = countAt(all, all.from);
  else if (role === "sum" || role === "min" || role === "max") point[role] = doubleAt(all, all.from);
  else readList(point, role, all);
}

function readList(point: DataPoint, role: Role, all: Fields): void {
  if (role === "bucketCounts" && !addAll(all, point.buckets, countAt)) point.broken = tooMany("buckets");
  else if (role === "explicitBounds" && !addAll(all, point.bounds, doubleAt)) point.broken = tooMany("bounds");
  else if (role === "quantileValues" && all.type === delimited) readQuantile(point, all);
}

const quantileNumber = SummaryDataPoint_ValueAtQuantileSchema.field.quantile.number;
const valueNumber = SummaryDataPoint_ValueAtQuantileSchema.field.value.number;

function readQuantile(point: DataPoint, field: Fields): void {
  let [quantile, value] = [0, 0];
  for (const all = fieldsWithin(field); next(all); ) {
    if (all.type !== fixed64) continue;
    if (all.field === quantileNumber) quantile = doubleAt(all, all.from);
    else if (all.field === valueNumber) value = doubleAt(all, all.from);
  }
  // A value of no quantile is none.
  point.quantiles.push(quantile, Number.isFinite(quantile) ? value : Number.NaN);
  if (point.quantiles.length > 2 * listMax) point.broken = tooMany("quantiles");
}

/** What is wrong with a data point's buckets; undefined: nothing. */
function brokenBuckets({ buckets, bounds }: DataPoint): string | undefined {
  if (buckets.length === 0 || buckets.length === bounds.length + 1) return undefined;
  return `bucket_counts must be one more than explicit_bounds, or none: there are ${buckets.length} and ${bounds.length}`;
}

function brokenRuns(runs: readonly [from: number, to: number][]): string | undefined {
  let bytes = 0;
  for (const [from, to] of runs) bytes += to - from;
  return bytes <= attributeBytesMax
    ? undefined
    : `the attributes of a data point may take at most ${attributeBytesMax} bytes`;
}

/** Differs between data points of one kind that become different values. */
export function shapeOf({ sum, min, max, buckets, bounds, quantiles }: DataPoint, kind: PointKind): string {
  if (kind === "gauge" || kind === "sum") return "";
  const present = [sum, min, max].map((each) => (each === undefined ? "-" : "+")).join("");
  return `${present}${buckets.length}/${bounds.join()}/${quantiles.filter((_, i) => i % 2 === 0).join()}`;
}

/** The values of a data point: one of a number, several of a distribution. */
export function valuesOf({ value, count, sum, min, max, buckets, quantiles }: DataPoint, kind: PointKind): number[] {
  if (kind === "gauge" || kind === "sum") return [value];
  const values = [count];
  for (const each of [sum, min, max]) if (each !== undefined) values.push(each);
  let below = 0;
  for (const more of buckets) {
    below += more;
    values.push(below);
  }
  for (let i = 1; i < quantiles.length; i += 2) values.push(quantiles[i] as number);
  return values;
}

/** The label by which the values of one data point differ. */
export const ownLabels: { readonly [K in PointKind]?: string } = { histogram: "le", summary: "quantile" };

/**
 * What these values are, in their order. Buckets say how many values do not exceed each bound, the last one being `+Inf`, as
 * Prometheus writes them.
 */
export function valueNamesOf(
  { sum, min, max, buckets, bounds, quantiles }: DataPoint,
  kind: PointKind,
): readonly ValueName[] {
  if (kind === "gauge" || kind === "sum") return [[""]];
  const bound = (le: number | undefined) => (le === undefined || le === Number.POSITIVE_INFINITY ? "+Inf" : String(le));
  return [
    [".count"],
    ...Object.entries({ sum, min, max }).flatMap(([name, each]): ValueName[] =>
      each === undefined ? [] : [[`.${name}`]],
    ),
    ...buckets.map((_, i): ValueName => [".bucket", "le", bound(bounds[i])]),
    ...quantiles.flatMap((quantile, i): ValueName[] => (i % 2 === 0 ? [["", "quantile", String(quantile)]] : [])),
  ];
}
