import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RequestSchema } from "#gen/io/prometheus/write/v2/request_pb.ts";
import { type MetricMetadata_MetricType, WriteRequestSchema } from "#gen/prometheus/remote_write_pb.ts";
import { scanned, scanSeries } from "../../../src/integrations/prometheus/series-scan.ts";
import {
  readVersion1,
  readVersion2,
  seriesAt,
  Unreadable,
  type WrittenSeries,
} from "../../../src/integrations/prometheus/write-request.ts";

const anySeries = fc.record({
  labels: fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 5 }),
  points: fc.array(fc.tuple(fc.integer(), fc.double()), { maxLength: 4 }),
  histograms: fc.array(fc.record({ timeMs: fc.integer(), count: fc.nat(), sum: fc.double() }), { maxLength: 2 }),
  exemplars: fc.nat({ max: 2 }),
});
type AnySeries = typeof anySeries extends fc.Arbitrary<infer T> ? T : never;

/** A series as read, its labels with it. */
const shown = (each: object | undefined) => {
  if (each === undefined || !("labels" in each)) return each;
  const { key: _, labels, ...rest } = each as WrittenSeries;
  return { ...rest, labels: labels() };
};
const read = ({ labels, points, histograms, exemplars }: AnySeries) => ({
  labels: labels.flat(),
  times: points.map(([timeMs]) => timeMs),
  values: points.map(([, value]) => value),
  histograms,
  exemplars,
});
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
        expect([...readVersion1(bytes)].map(shown)).toEqual([...all.map(read), ...told]);
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
        expect([...readVersion2(bytes)].map(shown)).toEqual(
          all.map((each) => ({ ...read(each), metadata: { type: 5, help: "", unit: "" } })),
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
      const found: unknown[] = [];
      const take = (from: number, to: number) => {
        const { labels, times, values, exemplars } = seriesAt(bytes, from, to);
        if (scanSeries(bytes, view, from, to)) {
          usual += 1;
          expect([[...scanned.times], [...scanned.values], exemplars]).toEqual([times, values, 0]);
        }
        found.push(labels());
        return true;
      };
      for (const each of readVersion1(bytes, take)) expect(each).toBeUndefined();
      expect(found).toEqual(all.map(({ labels }) => labels.flat()));
    }),
  );
  expect(usual).toBeGreaterThan(20);
});

describe("what cannot be read is an error, wherever it ends", () => {
  const v1 = toBinary(
    WriteRequestSchema,
    create(WriteRequestSchema, {
      timeseries: [{ labels: [{ name: "__name__", value: "up" }], samples: [{ value: 1, timestamp: 5n }] }],
    }),
  );

  test("a request that is cut off", () => {
    for (let end = 1; end < v1.length; end++) {
      expect(() => [...readVersion1(v1.subarray(0, end))].map(shown)).toThrow();
    }
  });

  test("any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        for (const readRequest of [readVersion1, readVersion2]) {
          try {
            for (const each of readRequest(bytes)) shown(each);
            const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
            if (scanSeries(bytes, view, 0, bytes.length)) expect(scanned.labelsEnd).toBeLessThanOrEqual(bytes.length);
          } catch (error) {
            expect(error).toBeInstanceOf(Error);
          }
        }
      }),
    );
  });

  test("a place that no symbol has, half a pair, a first symbol that is none", () => {
    const bytesOf = (init: Parameters<typeof create<typeof RequestSchema>>[1]) =>
      toBinary(RequestSchema, create(RequestSchema, init));
    expect(() => [...readVersion2(bytesOf({ symbols: ["", "a"], timeseries: [{ labelsRefs: [1, 2] }] }))]).toThrow(
      Unreadable,
    );
    expect(() => [...readVersion2(bytesOf({ symbols: ["", "a"], timeseries: [{ labelsRefs: [1] }] }))]).toThrow(
      Unreadable,
    );
    expect(() => [...readVersion2(bytesOf({ symbols: ["a"], timeseries: [{ labelsRefs: [0, 0] }] }))]).toThrow(
      Unreadable,
    );
  });

  test("more empty labels than a series may have", () => {
    const bytes = toBinary(
      WriteRequestSchema,
      create(WriteRequestSchema, { timeseries: [{ labels: Array.from({ length: 200 }, () => ({})) }] }),
    );
    expect(() => [...readVersion1(bytes)].map(shown)).toThrow("at most 128 labels");
  });
});
