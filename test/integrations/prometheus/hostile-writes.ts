// @ts-expect-error: the package has no types
import { compress } from "snappyjs";

/** What a request is called, how its bytes are made, and what may answer it. */
type HostileCase = [name: string, bytes: () => Buffer, statuses: readonly number[]];

/** A remote write request that is small on the wire and much once it is read. */
export interface HostileWrite {
  name: string;
  version: 1 | 2;
  /** Makes it, unpacked. */
  make(): Buffer;
  statuses: readonly number[];
}

const MiB = 2 ** 20;
/** As large as a body may be when it is unpacked; beside other test files an eighth of that. */
const bodyMax = 16 * MiB;
const longText = "x".repeat(bodyMax - MiB);

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
}

/** A field that holds bytes. */
const held = (field: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(bytes.byteLength)]), bytes]);
/** The same bytes again and again, as many times as asked for, or as go into a body. */
const many = (bytes: Uint8Array, count = Math.floor((bodyMax - 1024) / bytes.byteLength)): Buffer =>
  Buffer.alloc(count * bytes.byteLength, bytes);
const empty = (field: number) => held(field, Buffer.alloc(0));
const text = (field: number, value: string) => held(field, Buffer.from(value));
const double = (field: number, value: number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([Buffer.from(varint(field * 8 + 1)), bytes]);
};
const number = (field: number, value: number) => Buffer.from([...varint(field * 8), ...varint(value)]);
const sample = (timeMs: number) => held(2, Buffer.concat([double(1, 1), number(2, timeMs)]));
const label = (name: string, value: string) => held(1, Buffer.concat([text(1, name), text(2, value)]));
const up = label("__name__", "up");
/** A field that no schema has. */
const unknown = Buffer.from([0xf8, 7, 0]);
const group = Buffer.from([0x0b]);

/** What a series may hold, by its fields in each version: their numbers, and of histograms. */
const fields = {
  1: { series: 1, samples: 2, exemplars: 3, histograms: 4 },
  2: { series: 5, samples: 2, exemplars: 4, histograms: 3 },
} as const;
const [spans, deltas, counts, bounds] = [11, 12, 13, 16];

/** Requests of one series, which holds something besides its labels; `labelled` puts these before it. */
function inOneSeries(version: 1 | 2, labelled: (inner: Uint8Array) => Buffer): HostileCase[] {
  const { samples, exemplars, histograms } = fields[version];
  const list = (element: Uint8Array, count = 2000) => held(histograms, many(element, count));
  const within = Buffer.concat([
    many(number(deltas, 1), 1000),
    many(empty(spans), 1000),
    many(double(counts, 1), 1000),
  ]);
  const cases: HostileCase[] = [
    ["samples, twice as many as a series may have", () => many(sample(0), 200_000), [400]],
    ["empty samples", () => many(empty(samples)), [400]],
    ["empty histograms", () => many(empty(histograms)), [400]],
    ["empty exemplars", () => many(empty(exemplars)), [400]],
    ["exemplars, twice as many", () => many(empty(exemplars), 2000), [400]],
    ["unknown fields", () => many(unknown), [400]],
    ["unknown fields, twice as many", () => many(unknown, 2000), [400]],
    ["unknown fields in a sample", () => held(samples, many(unknown)), [400]],
    ["values of a sample", () => held(samples, many(double(1, 1))), [400]],
    ["unknown fields in a histogram", () => held(histograms, many(unknown)), [400]],
    ["sums of a histogram", () => held(histograms, many(double(3, 1))), [400]],
    ["unknown fields in an exemplar", () => held(exemplars, many(unknown)), [204]],
    ["empty spans", () => held(histograms, many(empty(spans))), [400]],
    ["spans, twice as many", () => list(empty(spans)), [400]],
    ["deltas, twice as many", () => list(number(deltas, 1)), [400]],
    ["counts, twice as many", () => list(double(counts, 1)), [400]],
    ["bounds, twice as many", () => list(double(bounds, 1)), [400]],
    ["packed deltas", () => held(histograms, held(deltas, many(Buffer.from([1])))), [400]],
    ["packed deltas, twice as many", () => list(held(deltas, many(Buffer.from([1]), 2000)), 1), [400]],
    ["a delta that does not end", () => held(histograms, held(deltas, many(Buffer.from([0x80])))), [400]],
    ["packed counts", () => held(histograms, held(counts, many(Buffer.alloc(8)))), [400]],
    ["histograms of many buckets", () => many(held(histograms, within)), [400]],
    ["groups", () => many(group), [400]],
    ["a length beyond the request", () => Buffer.from([samples * 8 + 2, ...varint(2 ** 32 - 1)]), [400]],
    ["a length beyond the series", () => Buffer.from([samples * 8 + 2, 100]), [400]],
  ];
  return cases.map(([name, inner, statuses]) => [`in a series: ${name}`, () => labelled(inner()), statuses]);
}

const series1 = (inner: Uint8Array, labels: Uint8Array = up) => held(fields[1].series, Buffer.concat([labels, inner]));

function version1(nowMs: number): HostileCase[] {
  const point = sample(nowMs);
  const runs = Buffer.concat([label("a", "b"), unknown]);
  const wide = Buffer.concat(
    Array.from({ length: 31 }, (_, i) => label(`k${10 + i}`.padEnd(255, "x"), "v".repeat(1024))),
  );
  const sorted = Array.from({ length: 127 }, (_, i) => label(`a${100 + i}`, "b"));
  const numbered = (count: number, labels: Uint8Array) =>
    Buffer.concat(
      Array.from({ length: count }, (_, i) => series1(point, Buffer.concat([up, labels, label("z", `${i}`)]))),
    );
  return [
    ["empty series", () => many(empty(1)), [413]],
    ["series, twice as many as a request may have", () => many(series1(point), 100_000), [413]],
    ["empty metadata", () => many(empty(3)), [413]],
    ["metadata of a long help", () => held(3, Buffer.concat([text(2, "up"), text(4, longText)])), [204]],
    ["metadata of a long name", () => held(3, text(2, longText)), [204]],
    ["metadata of many helps", () => held(3, many(text(4, "x"))), [400]],
    ["unknown fields in metadata", () => held(3, many(unknown)), [400]],
    ["unknown fields", () => many(unknown), [204]],
    ["groups", () => many(group), [400]],
    ["a length beyond the request", () => Buffer.from([0x0a, ...varint(2 ** 32 - 1)]), [400]],
    ["empty labels", () => series1(point, many(empty(1))), [400]],
    ["labels, twice as many", () => series1(point, many(label("a", "b"), 256)), [400]],
    ["labels apart", () => series1(point, many(runs)), [400]],
    ["a long value", () => series1(point, label("__name__", longText)), [400]],
    ["a long name", () => series1(point, label(longText, "a")), [400]],
    ["texts at twice their bounds", () => series1(point, many(label("x".repeat(510), "v".repeat(2048)), 64)), [400]],
    [
      "no UTF-8",
      () => series1(point, many(Buffer.from([0x0a, 8, 0x0a, 1, 0xff, 0x12, 3, 0xff, 0xff, 0xff]), 128)),
      [400],
    ],
    ["names of a label", () => series1(point, held(1, many(text(1, "a")))), [400]],
    ["unknown fields in a label", () => series1(point, held(1, many(unknown))), [400]],
    ["unknown fields in each of many labels", () => series1(point, many(held(1, many(unknown, 900)), 128)), [400]],
    ["series of the longest labels", () => numbered(370, wide), [204]],
    ["series of many labels", () => many(series1(point, Buffer.concat(sorted))), [400]],
    ["series of empty labels", () => many(series1(point, many(empty(1), 128))), [413]],
    ["old samples", () => series1(many(sample(0), 50_000)), [400]],
    ...inOneSeries(1, (inner) => series1(inner)),
  ];
}

/** A request of version 2, whose symbols begin with "", "__name__" and "up". */
function request2(symbols: readonly (string | Uint8Array)[], ...series: readonly Uint8Array[]): Buffer {
  const all = ["", "__name__", "up", ...symbols].map((symbol) => held(4, Buffer.from(symbol as string)));
  return Buffer.concat([...all, ...series]);
}

const refs = (...places: readonly number[]) => held(1, Buffer.from(places.flatMap(varint)));
const series2 = (inner: Uint8Array, places: Uint8Array = refs(1, 2)) =>
  held(fields[2].series, Buffer.concat([places, inner]));

function version2(nowMs: number): HostileCase[] {
  const point = sample(nowMs);
  const wide = Array.from({ length: 31 }, (_, i) => `k${10 + i}`.padEnd(255, "x"));
  const value = 3 + wide.length;
  const widest = [1, 2, ...wide.flatMap((_, i) => [3 + i, value])];
  const numbered = Array.from({ length: 50_000 }, (_, i) => `${i}`.padStart(5, "0"));
  const texts = [...wide, "v".repeat(1024), "z"];
  const help = (place: number) => held(5, number(3, place));
  return [
    ["empty series", () => many(empty(5)), [400]],
    ["empty series after a symbol", () => request2([], many(empty(5))), [413]],
    ["series, twice as many as a request may have", () => request2([], many(series2(point), 100_000)), [413]],
    ["symbols, twice as many", () => Buffer.concat([many(empty(4), 2_000_000), series2(point)]), [400]],
    ["as many symbols as there may be", () => Buffer.concat([many(empty(4), 1_000_000), series2(point)]), [400]],
    ["unknown fields", () => many(unknown), [204]],
    ["groups", () => many(group), [400]],
    ["a length beyond the request", () => Buffer.from([0x2a, ...varint(2 ** 32 - 1)]), [400]],
    [
      "a long symbol, used again and again",
      () => request2(["x".repeat(300_000)], many(series2(point, held(1, many(Buffer.from([3]), 256))), 1000)),
      [400],
    ],
    [
      "a symbol at twice the bound of values",
      () => request2(["x".repeat(2048)], many(series2(point, refs(1, 3)), 50_000)),
      [400],
    ],
    [
      "a symbol at twice the bound of names",
      () => request2(["x".repeat(510)], many(series2(point, refs(3, 2)), 50_000)),
      [400],
    ],
    [
      "a symbol that is no UTF-8",
      () => request2([Buffer.alloc(1000, 0xff)], many(series2(point, refs(1, 2, 3, 3)), 50_000)),
      [400],
    ],
    ["references", () => request2([], series2(point, held(1, many(Buffer.from([1]))))), [400]],
    ["references one by one", () => request2([], series2(point, many(number(1, 1)))), [400]],
    [
      "references, twice as many",
      () => request2([], many(series2(point, held(1, many(Buffer.from([1]), 512))), 10_000)),
      [400],
    ],
    ["references to no symbol", () => request2([], many(series2(point, refs(1, 2, 4_000_000_000, 1)), 50_000)), [400]],
    ["half a pair", () => request2([], many(series2(point, refs(1, 2, 1)), 50_000)), [400]],
    [
      "the longest labels, again and again",
      () => request2(texts, many(series2(point, refs(...widest)), 50_000)),
      [204],
    ],
    [
      "the longest labels of many series",
      () =>
        request2(
          [...texts, ...numbered],
          ...numbered.map((_, i) => series2(point, refs(...widest, value + 1, value + 2 + i))),
        ),
      [400],
    ],
    [
      "labels that are not sorted",
      () => request2([...texts, "a"], many(series2(point, refs(...widest, value + 2, value)), 50_000)),
      [204],
    ],
    ["a long help", () => request2([longText], series2(Buffer.concat([point, help(3)]))), [204]],
    [
      "helps at twice their bound",
      () => request2(["x".repeat(2048)], many(series2(Buffer.concat([point, help(3)])), 50_000)),
      [204],
    ],
    ["metadata again and again", () => request2([], series2(many(empty(5)))), [400]],
    ["unknown fields in metadata", () => request2([], series2(held(5, many(unknown)))), [400]],
    ["old samples", () => request2([], series2(many(sample(0), 50_000))), [400]],
    ...inOneSeries(2, (inner) => request2([], series2(inner))),
  ];
}

/** All of them; the times of those that are good are this one. */
export function hostileWrites(nowMs: number): HostileWrite[] {
  const of = (version: 1 | 2, all: HostileCase[]) =>
    all.map(([name, make, statuses]) => ({ name: `version ${version}: ${name}`, version, make, statuses }));
  return [...of(1, version1(nowMs)), ...of(2, version2(nowMs))];
}

/** The headers of a version, and a request packed. */
export function packedWrite(
  { version }: HostileWrite,
  bytes: Buffer,
): { headers: Record<string, string>; body: Buffer } {
  const proto = version === 1 ? "prometheus.WriteRequest" : "io.prometheus.write.v2.Request";
  const headers = { "content-type": `application/x-protobuf;proto=${proto}`, "content-encoding": "snappy" };
  return { headers, body: Buffer.from(compress(bytes)) };
}
