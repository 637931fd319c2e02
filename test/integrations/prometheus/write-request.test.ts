import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RequestSchema } from "#gen/io/prometheus/write/v2/request_pb.ts";
import { type MetricMetadata_MetricType, WriteRequestSchema } from "#gen/prometheus/remote_write_pb.ts";
import { Unreadable } from "../../../src/integrations/prometheus/message-walk.ts";
import { scanned, scanSeries } from "../../../src/integrations/prometheus/series-scan.ts";
import { symbolsOf } from "../../../src/integrations/prometheus/symbols.ts";
import { version1 } from "../../../src/integrations/prometheus/version1.ts";
import { version2 } from "../../../src/integrations/prometheus/version2.ts";
import type { WriteRequest } from "../../../src/integrations/prometheus/write-request.ts";
import { keptKey, seriesKey } from "../../../src/metrics/series-key.ts";
import { seriesMemory, type TenantSeries } from "../../../src/metrics/series-memory.ts";

const anySeries = fc.record({
  labels: fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 5 }),
  points: fc.array(fc.tuple(fc.integer(), fc.double()), { maxLength: 4 }),
  histograms: fc.array(fc.record({ timeMs: fc.integer(), count: fc.nat(), sum: fc.double() }), { maxLength: 2 }),
  exemplars: fc.nat({ max: 2 }),
});
type AnySeries = typeof anySeries extends fc.Arbitrary<infer T> ? T : never;

const newTenant = () => seriesMemory().of("a tenant");
const open1 = (bytes: Uint8Array, take?: Parameters<typeof version1>[1]) => version1(bytes, take);
const open2 = (bytes: Uint8Array, known = newTenant()) =>
  version2(bytes, symbolsOf(bytes, { known, reserve: () => undefined }));

/** What is read of a request: its series with their labels, and its metadata. */
function readAll(request: WriteRequest): object[] {
  const all: object[] = [];
  for (const item of request.items()) {
    if (item === undefined) continue;
    if ("family" in item) {
      all.push(item);
      continue;
    }
    const { times, values, histograms, others } = item;
    const labels = item.broken ?? request.setKey(item) ?? request.labels(item);
    const facts = request.facts(item);
    all.push(structuredClone({ labels, times, values, histograms, others, ...(facts !== undefined && { facts }) }));
  }
  return all;
}

const read = ({ labels, points, histograms, exemplars }: AnySeries) => ({
  labels: labels.some(([name]) => name === "") ? "the name of a label must not be empty" : labels.flat(),
  times: points.map(([timeMs]) => timeMs),
  values: points.map(([, value]) => value),
  histograms,
  others: exemplars,
});
const fitted = (text: string) => text.replaceAll(/\p{Cc}/gu, " ");
const pointsOf = ({ points, histograms }: AnySeries) => ({
  samples: points.map(([timeMs, value]) => ({ timestamp: BigInt(timeMs), value })),
  histograms: histograms.map(({ timeMs, count, sum }) => ({
    timestamp: BigInt(timeMs),
    sum,
    count: { case: "countInt" as const, value: BigInt(count) },
    positiveDeltas: [1n, -1n],
    schema: -4,
  })),
});

describe("a request is read as the decoder made of its schema reads it", () => {
  test("version 1", () => {
    const metadata = fc.array(
      fc.record({
        family: fc.string(),
        help: fc.string(),
        unit: fc.string(),
        type: fc.constantFrom<MetricMetadata_MetricType>(0, 1, 7),
      }),
      {
        maxLength: 3,
      },
    );
    fc.assert(
      fc.property(fc.array(anySeries, { maxLength: 5 }), metadata, (all, told) => {
        const request = create(WriteRequestSchema, {
          timeseries: all.map((each) => ({
            ...pointsOf(each),
            labels: each.labels.map(([name, value]) => ({ name, value })),
            exemplars: Array.from({ length: each.exemplars }, () => ({ value: 1 })),
          })),
          metadata: told.map(({ family, ...rest }) => ({ ...rest, metricFamilyName: family })),
        });
        const bytes = toBinary(WriteRequestSchema, request);
        const instruments = ["", "COUNTER CUMULATIVE"];
        expect(readAll(open1(bytes))).toEqual([
          ...all.map(read),
          ...told.map(({ family, help, unit, type }) => ({
            family,
            facts: { description: fitted(help), units: fitted(unit), instrument: instruments[type] ?? "STATE_SET" },
          })),
        ]);
      }),
    );
  });

  test("version 2", () => {
    fc.assert(
      fc.property(fc.array(anySeries, { maxLength: 5 }), (all) => {
        const symbols = ["", ...new Set(all.flatMap(({ labels }) => labels.flat()).filter((text) => text !== ""))];
        const request = create(RequestSchema, {
          symbols,
          timeseries: all.map((each) => ({
            ...pointsOf(each),
            labelsRefs: each.labels.flat().map((text) => symbols.indexOf(text)),
            exemplars: Array.from({ length: each.exemplars }, () => ({ value: 1 })),
            metadata: { type: 5 as const, helpRef: 0, unitRef: 0 },
          })),
        });
        const bytes = toBinary(RequestSchema, request);
        const facts = { description: "", units: "", instrument: "SUMMARY CUMULATIVE" };
        expect(readAll(open2(bytes))).toEqual(
          all.map((each) => ({ ...read(each), others: each.exemplars + 1, facts })),
        );
      }),
    );
  });
});

test("a series of the usual form is scanned to the same", () => {
  let usual = 0;
  fc.assert(
    fc.property(fc.array(anySeries, { maxLength: 5 }), (all) => {
      const timeseries = all.map((each) => ({
        samples: each.points.map(([timeMs, value]) => ({ timestamp: BigInt(Math.abs(timeMs)), value })),
        ...(each.exemplars === 0 ? {} : { exemplars: [{ value: 1 }] }),
        labels: each.labels.map(([name, value]) => ({ name, value })),
      }));
      const bytes = toBinary(WriteRequestSchema, create(WriteRequestSchema, { timeseries }));
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const take = (from: number, to: number, at: number) => {
        if (!scanSeries(bytes, view, from, to)) return false;
        usual += 1;
        const alone = readAll(open1(bytes.subarray(at - 1, to)));
        expect(alone).toMatchObject([{ times: scanned.times, values: scanned.values, others: 0 }]);
        return true;
      };
      readAll(open1(bytes, take));
    }),
  );
  expect(usual).toBeGreaterThan(20);
});

const bytesOf2 = (init: MessageInitShape<typeof RequestSchema>) => toBinary(RequestSchema, create(RequestSchema, init));

describe("what cannot be read is an error, wherever it ends", () => {
  const v1 = toBinary(
    WriteRequestSchema,
    create(WriteRequestSchema, {
      timeseries: [{ labels: [{ name: "__name__", value: "up" }], samples: [{ value: 1, timestamp: 5n }] }],
    }),
  );

  test("a request that is cut off", () => {
    for (let end = 1; end < v1.length; end++) expect(() => readAll(open1(v1.subarray(0, end)))).toThrow();
  });

  test("any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        for (const open of [open1, open2]) {
          const request = open(bytes);
          try {
            readAll(request);
            expect([...request.shownAt(0)].length % 2).toBe(0);
          } catch (error) {
            expect(error).toBeInstanceOf(Error);
          }
          const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
          if (scanSeries(bytes, view, 0, bytes.length)) expect(seriesKey.ends[0]).toBeLessThanOrEqual(bytes.length);
        }
      }),
    );
  });

  test("a first symbol that is not empty", () => {
    expect(() => readAll(open2(bytesOf2({ symbols: ["a"], timeseries: [{ labelsRefs: [0, 0] }] })))).toThrow(
      Unreadable,
    );
  });

  test.each([
    ["samples", 2, 0],
    ["value of a sample", 2, [0x12, 2, 8, 1]],
    ["timestamp of a sample", 2, [0x12, 9, 0x11, 0, 0, 0, 0, 0, 0, 0, 0]],
    ["exemplars", 3, 0],
    ["histograms", 4, 0],
    ["spans of a histogram", 4, [0x22, 2, 0x58, 1]],
    ["deltas of a histogram", 4, [0x22, 9, 0x61, 0, 0, 0, 0, 0, 0, 0, 0]],
    ["a group", 9, [0x4b, 0x4c]],
    ["sum of a histogram", 4, [0x22, 2, 0x18, 1]],
    ["labels", 1, 0],
    ["name of a label", 1, [0x0a, 2, 8, 1]],
  ])("another wire type: %s", (_, field, series) => {
    const inner = series === 0 ? [field * 8, 1] : series;
    expect(() => readAll(open1(Buffer.from([0x0a, (inner as number[]).length, ...(inner as number[])])))).toThrow(
      Unreadable,
    );
  });
});

describe("one series that is not taken leaves the others", () => {
  const good = { labelsRefs: [1, 2], samples: [{ value: 1, timestamp: 5n }] };
  const symbols = ["", "__name__", "up", "x".repeat(4097)];
  const goodRead = { labels: ["__name__", "up"], times: [5], values: [1], histograms: [], others: 0 };
  test.each([
    ["a place that no symbol has", { labelsRefs: [1, 9] }, "there is no symbol 9, only 4"],
    ["half a pair", { labelsRefs: [1] }, "labels_refs must name pairs"],
    ["a long value", { labelsRefs: [1, 3] }, "the value of a label may have at most 1024 characters"],
    ["a long name", { labelsRefs: [3, 1] }, "the name of a label may have at most 255 characters"],
    ["130 labels", { labelsRefs: Array.from({ length: 260 }, () => 1) }, "a series may have at most 129 labels"],
  ])("%s", (_, broken, rule) => {
    const bytes = bytesOf2({ symbols, timeseries: [good, broken, good] });
    expect(readAll(open2(bytes))).toEqual([goodRead, expect.objectContaining({ labels: rule }), goodRead]);
  });

  test("more empty labels than a series may have", () => {
    const labels = Array.from({ length: 200 }, () => ({}));
    const bytes = toBinary(WriteRequestSchema, create(WriteRequestSchema, { timeseries: [{ labels }, {}] }));
    expect(readAll(open1(bytes))).toMatchObject([{ labels: "a series may have at most 129 labels" }, { labels: [] }]);
  });
});

test("a symbol that is used again and again is looked up once, and one that no label may be is never made a text", () => {
  const timeseries = Array.from({ length: 1000 }, () => ({ labelsRefs: [1, 2, 3, 4] }));
  const bytes = bytesOf2({ symbols: ["", "__name__", "up", "a", "x".repeat(300_000)], timeseries });
  const known = newTenant();
  let looks = 0;
  const symbols: TenantSeries = {
    ...known,
    idOf(owner) {
      looks += 1;
      return known.idOf(owner);
    },
  };
  const request = open2(bytes, symbols);
  for (const item of request.items()) {
    if (item !== undefined && "at" in item) expect(request.setKey(item)).toMatch(/at most 1024 characters/);
  }
  expect(looks).toBe(3);
});

test("series of equal labels have equal keys in further requests, whatever the places of their symbols", () => {
  const symbols = newTenant();
  const keysOf = (texts: string[], refs: number[][]) => {
    const bytes = bytesOf2({ symbols: texts, timeseries: refs.map((labelsRefs) => ({ labelsRefs })) });
    const request = open2(bytes, symbols);
    const keys: string[] = [];
    for (const item of request.items()) {
      if (item === undefined || "family" in item) continue;
      expect(request.setKey(item)).toBeUndefined();
      keys.push(Buffer.from(keptKey(0).bytes).toString("hex"));
    }
    return keys;
  };
  const [up, down] = keysOf(
    ["", "__name__", "up", "down"],
    [
      [1, 2],
      [1, 3],
    ],
  );
  expect(
    keysOf(
      ["", "down", "up", "other", "__name__"],
      [
        [4, 1],
        [4, 2],
        [4, 3],
      ],
    ),
  ).toEqual([down, up, expect.not.stringMatching(`^(${up}|${down})$`)]);
});

describe("a walk over one series of many fields pauses", () => {
  const fields = 200_000;
  const held = (tag: number, bytes: Uint8Array) =>
    Buffer.concat([Buffer.from([tag]), new BinaryWriter().uint32(bytes.length).finish(), bytes]);
  const run = (bytes: number[]) => Buffer.alloc(fields * bytes.length, Buffer.from(bytes));
  /** The most histograms that there may be, each with half of the buckets that it may have. */
  const buckets = Buffer.alloc(2 * 500, Buffer.from([0x60, 1]));
  const histograms = Buffer.concat(Array.from({ length: 400 }, () => held(0x22, buckets)));
  test.each([
    ["unknown fields beside series", run([0x48, 1]), fields / 10_000],
    ["symbols of version 2, which version 1 has not", run([0x22, 0]), fields / 10_000],
    ["histograms", held(0x0a, histograms), (400 * 500) / 10_000],
    ["samples", held(0x0a, Buffer.alloc(2 * 100_000, Buffer.from([0x12, 0]))), 100_000 / 10_000],
  ])("%s", (_, bytes, least) => {
    const pauses = [...open1(bytes).items()].filter((item) => item === undefined);
    expect(pauses.length).toBeGreaterThanOrEqual(Math.floor(least) - 1);
  });
});
