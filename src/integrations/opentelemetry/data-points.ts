import {
  DataPointFlags,
  SummaryDataPoint_ValueAtQuantileSchema,
} from "#gen/opentelemetry/proto/metrics/v1/metrics_pb.ts";
import { delimited, type Fields, fieldsOf, fixed64, next, varint } from "./fields.ts";
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
}

/** A value that is made of a data point: what follows the metric's name, and the label by which it is another than the rest. */
export type ValueName = readonly [suffix: string, label?: string, labelValue?: string];

const roles = ["attributes", "timeUnixNano", "flags", "asDouble", "asInt", "count", "sum", "min", "max"] as const;
const lists = ["bucketCounts", "explicitBounds", "quantileValues"] as const;
type Role = (typeof roles)[number] | (typeof lists)[number];

/** What the fields of each kind of data point are, by their numbers. */
const rolesOf = Object.fromEntries(
  Object.entries(pointSchemas).map(([kind, { fields }]) => {
    const known = fields.filter(({ localName }) => ([...roles, ...lists] as string[]).includes(localName));
    const byNumber: (Role | undefined)[] = [];
    for (const { number, localName } of known) byNumber[number] = localName as Role;
    return [kind, byNumber];
  }),
) as Record<PointKind, (Role | undefined)[]>;

/** ms of nanoseconds in 8 bytes; without a bigint, since points are many. */
function msAt({ view, from }: Fields): number {
  const high = view.getUint32(from + 4, true);
  // 2^32 ns are 4294 ms and 967,296 ns.
  return high * 4294 + Math.floor((high * 967_296 + view.getUint32(from, true)) / 1e6);
}

const countAt = ({ view }: Fields, at: number) => view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
const doubleAt = ({ view }: Fields, at: number) => view.getFloat64(at, true);

/** Adds the numbers of a field that is packed, or one of them. */
function addAll(all: Fields, to: number[], read: (all: Fields, at: number) => number): void {
  for (let at = all.from; at + 8 <= all.to; at += 8) to.push(read(all, at));
}

/** Reads a data point. @throws code 3 for what is no Protobuf */
export function readPoint(bytes: Uint8Array, kind: PointKind): DataPoint {
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
  };
  const byNumber = rolesOf[kind];
  const runs: [from: number, to: number][] = [];
  for (const all = fieldsOf(bytes); next(all); ) {
    const role = byNumber[all.field];
    if (role === undefined) continue;
    if (all.type === fixed64) readNumber(point, role, all);
    else if (all.type === varint) {
      if (role === "flags") point.recorded = (all.number & DataPointFlags.NO_RECORDED_VALUE_MASK) === 0;
    } else if (all.type === delimited) {
      const run = runs.at(-1);
      if (role === "bucketCounts") addAll(all, point.buckets, countAt);
      else if (role === "explicitBounds") addAll(all, point.bounds, doubleAt);
      else if (role === "quantileValues") readQuantile(point, bytes, all);
      else if (role !== "attributes") continue;
      else if (run?.[1] === all.start) run[1] = all.to;
      else runs.push([all.start, all.to]);
    }
  }
  const pieces = runs.map(([from, to]) => bytes.subarray(from, to));
  if (pieces.length > 0) point.attributes = pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
  return point;
}

function readNumber(point: DataPoint, role: Role, all: Fields): void {
  if (role === "timeUnixNano") point.timeMs = msAt(all);
  else if (role === "asInt") point.value = Number(all.view.getBigInt64(all.from, true));
  else if (role === "asDouble") point.value = doubleAt(all, all.from);
  else if (role === "count") point.count = countAt(all, all.from);
  else if (role === "sum" || role === "min" || role === "max") point[role] = doubleAt(all, all.from);
  else if (role === "bucketCounts") addAll(all, point.buckets, countAt);
  else if (role === "explicitBounds") addAll(all, point.bounds, doubleAt);
}

const quantileNumber = SummaryDataPoint_ValueAtQuantileSchema.field.quantile.number;

function readQuantile({ quantiles }: DataPoint, bytes: Uint8Array, { from, to }: Fields): void {
  let [quantile, value] = [0, 0];
  for (const all = fieldsOf(bytes, from, to); next(all); ) {
    if (all.type !== fixed64) continue;
    if (all.field === quantileNumber) quantile = doubleAt(all, all.from);
    else value = doubleAt(all, all.from);
  }
  quantiles.push(quantile, value);
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

/** What is wrong with a data point's buckets; undefined: nothing. */
export function brokenBuckets({ buckets, bounds }: DataPoint): string | undefined {
  if (buckets.length === 0 || buckets.length === bounds.length + 1) return undefined;
  return `bucket_counts must be one more than explicit_bounds, or none: there are ${buckets.length} and ${bounds.length}`;
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
