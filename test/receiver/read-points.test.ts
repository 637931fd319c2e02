import { fromBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { MetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { DataReceiverService, type PutMetricsRequest } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { paced } from "../../src/event-loop.ts";
import { noNotes } from "../../src/metrics/notes.ts";
import type { KeptKey } from "../../src/metrics/series-key.ts";
import { type SeriesMemory, seriesMemory, seriesOf } from "../../src/metrics/series-memory.ts";
import { type MessageReader, messageReader } from "../../src/protocols/message-reader.ts";
import { decodePoint, formKey, pointReader, scannedPointsOf } from "../../src/receiver/read-points.ts";
import type { ReadingCall } from "../../src/transcoding/json/parse.ts";
import { cases } from "../support/cases.ts";

const tenantId = "0192aaaa-0000-7000-8000-000000000001";
const usual = messageReader(DataReceiverService.method.putMetrics, { bytesMax: 40_000, itemsMax: 12 });

/** Everything that may be in a point, as its bytes: what senders write, and what they never should. */
const varint = (field: number, value: number) => new BinaryWriter().tag(field, WireType.Varint).uint64(value).finish();
const double = (value: number) => new BinaryWriter().tag(3, WireType.Bit64).double(value).finish();
const text = (field: number, value: string) =>
  new BinaryWriter().tag(field, WireType.LengthDelimited).string(value).finish();
const bytes = (field: number, value: Uint8Array) =>
  new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(value).finish();
const label = (key: string, value: string) => bytes(4, Buffer.concat([text(1, key), text(2, value)]));
const units = bytes(6, bytes(1, Buffer.concat([text(1, "units"), bytes(2, text(3, "ms"))])));

const nowMs = Date.now();
const known = [
  [text(1, "cpu"), label("host", "web-1"), label("zone", "b")],
  [text(1, "disk"), label("host", "web-1"), label("zone", "b"), units],
  [text(1, "memory"), label("host", "x".repeat(1000)), label("a", "1"), label("b", "2"), label("c", "3")],
];
const odd = fc.constantFrom(
  text(1, "cpu"),
  label("host", "web-1"),
  label("zone", "c"),
  label("", "web-1"),
  bytes(4, Buffer.concat([text(2, "web-1"), text(1, "host")])),
  bytes(4, text(1, "host")),
  units,
  varint(2, nowMs - 5),
  varint(2, 5),
  new BinaryWriter().tag(2, WireType.Varint).int64(-5).finish(),
  double(Number.NaN),
  double(4),
  varint(9, 1),
  text(9, "unknown"),
  varint(1, 3),
  Buffer.from([0x0a]),
  Buffer.from([0x0a, 0xff]),
  Buffer.from([0x0a, 0x83, 0x00, 0x63, 0x70, 0x75]),
  Buffer.from([0x22, 0x02, 0x0a, 0x05]),
  text(1, "\u0001"),
  bytes(1, Buffer.from([0xff, 0xfe])),
  Buffer.from([0x0b]),
);
const point = fc
  .record({
    series: fc.constantFrom(...known),
    time: fc.integer({ min: nowMs - 1000, max: nowMs }),
    value: fc.double({ noNaN: true, noDefaultInfinity: true }),
    more: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(odd, { maxLength: 2 }) },
    ),
    order: fc.infiniteStream(fc.nat(1000)),
    less: fc.oneof({ weight: 5, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(4) }),
  })
  .map(({ series, time, value, more, order, less }) => {
    const fields = [...series, varint(2, time), double(value), ...more].filter((_, i) => i !== less);
    const places = fields.map(() => order.next().value as number);
    return Buffer.concat(
      [...fields.keys()].sort((a, b) => (places[a] ?? 0) - (places[b] ?? 0)).map((i) => fields[i] as Uint8Array),
    );
  });
const field = fc.oneof(
  { weight: 20, arbitrary: point.map((each) => bytes(5, each)) },
  { weight: 4, arbitrary: point.map((each) => bytes(4, each)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(varint(1, 1), bytes(3, text(1, "x")), text(9, "unknown"), Buffer.from([0x2a])),
  },
);
const request = fc
  .tuple(
    fc.array(field, { maxLength: 14 }),
    fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(30) }),
  )
  .map(([fields, cut]) => {
    const all = Buffer.concat(fields);
    return all.subarray(0, Math.max(0, all.length - cut));
  });

function call() {
  const reserved = { bytes: 0 };
  const reserve = (more: number) => {
    reserved.bytes += more;
  };
  return { reserved, call: { reserve, pace: paced(() => undefined) } };
}

/** Learns the point in these bytes, whose series has this number. */
function learn(memory: SeriesMemory, sent: Uint8Array, number: number, unit = "") {
  const { metric, dimensions, labels } = fromBinary(MetricSchema, sent);
  const key = formKey(sent, Object.keys(dimensions).length + Object.keys(labels).length) as KeptKey;
  const notes = { ...noNotes, units: unit };
  memory.of(tenantId).learn(key, { number, entityId: Buffer.alloc(20, number), metric, ...notes }, notes, nowMs);
}

const readBy = async (of: MessageReader, bytes: Uint8Array, call: ReadingCall) => of.read(bytes, true, call);

describe("requests of PutMetrics", () => {
  let own: SeriesMemory;
  const sample = (i: number) => Buffer.concat([...(known[i] as Uint8Array[]), varint(2, nowMs), double(1)]);
  beforeEach(() => {
    own = seriesMemory();
    learn(own, sample(0), 1);
    learn(own, sample(1), 2, "ms");
    learn(own, sample(2), 3);
  });
  const reader = (tenant = tenantId) => pointReader(own, () => nowMs)(usual, () => tenant);

  test("are accepted, refused and read as by protobuf-es, whatever they hold and in whatever order", async () => {
    let fast = 0;
    await fc.assert(
      fc.asyncProperty(request, async (sent) => {
        const [plain, quick] = [call(), call()];
        const wanted = await readBy(usual, sent, plain.call).catch((error: Error) => error);
        const got = await readBy(reader(), sent, quick.call).catch((error: Error) => error);
        if (wanted instanceof Error) {
          expect(got).toBeInstanceOf(Error);
          expect((got as Error).message).toBe(wanted.message);
          return;
        }
        const { metrics, taggedMetrics, compactMetrics, detailedResponse } = wanted as PutMetricsRequest;
        const rest = got as PutMetricsRequest;
        expect(rest.detailedResponse).toBe(detailedResponse);
        expect(rest.compactMetrics).toEqual(compactMetrics);
        const read = scannedPointsOf(rest);
        if (read === undefined) return expect(got).toEqual(wanted);
        expect(quick.reserved).toEqual(plain.reserved);
        for (const [list, all, left] of [
          [read.lists.canonical, metrics, rest.metrics],
          [read.lists.tagged, taggedMetrics, rest.taggedMetrics],
        ] as const) {
          expect(list.segments).toHaveLength(all.length);
          expect(list.segments.filter((segment) => segment === undefined)).toHaveLength(left.length);
          let missing = 0;
          for (const [i, message] of all.entries()) {
            const [segment, entry] = [list.segments[i], list.entries[i] as number];
            if (segment === undefined) {
              expect(left[missing]).toEqual(message);
              missing += 1;
              continue;
            }
            fast += 1;
            expect(list.times[i]).toBe(Number(message.timestamp));
            expect(list.values[i]).toBe(message.value);
            expect(seriesOf(segment, entry).metric).toBe(message.metric);
            if (list === read.lists.canonical) expect(decodePoint(MetricSchema, read.bytes, list, i)).toEqual(message);
            const labels = "dimensions" in message ? message.dimensions : message.tags;
            const learnt = fromBinary(MetricSchema, sample((segment.numbers[entry] as number) - 1));
            expect(labels).toEqual(learnt.dimensions);
            const metadata = "metadataFields" in message ? message.metadataFields : undefined;
            expect(metadata).toEqual(learnt.metadataFields);
          }
        }
      }),
      { numRuns: cases(1000) },
    );
    expect(fast).toBeGreaterThan(0);
  }, 60_000);

  const whole = (fields: Uint8Array[]) => bytes(5, Buffer.concat([...fields, varint(2, nowMs), double(7)]));
  /** The numbers of the series that are found; 0: none is. */
  const found = async (sent: Uint8Array, tenant?: string, at = nowMs) => {
    const own2 = pointReader(own, () => at)(usual, () => tenant ?? tenantId);
    const read = scannedPointsOf((await own2.read(sent, true, call().call)) as PutMetricsRequest);
    const { segments, entries } = read?.lists.canonical ?? { segments: [], entries: [] };
    return segments.map((segment, i) => segment?.numbers[entries[i] as number] ?? 0);
  };

  test("find a series whatever the order of its labels, and only the tenant's own", async () => {
    const labels = known[2] as Uint8Array[];
    expect(await found(whole(labels.toReversed()))).toEqual([3]);
    expect(await found(whole(labels.toReversed()), "0192aaaa-0000-7000-8000-000000000002")).toEqual([0]);
  });

  test("do not trust a number for longer than ten minutes", async () => {
    const labels = known[0] as Uint8Array[];
    expect(await found(whole(labels), tenantId, nowMs + 599_000)).toEqual([1]);
    expect(await found(whole(labels), tenantId, nowMs + 600_000)).toEqual([0]);
  });

  test("with metadata are looked at again when the units of their series have changed", async () => {
    const other = [text(1, "disk"), label("host", "web-1"), label("zone", "b"), bytes(6, bytes(1, text(1, "units")))];
    learn(own, Buffer.concat([...other, varint(2, nowMs), double(1)]), 2, "s");
    expect(await found(whole(known[1] as Uint8Array[]))).toEqual([0]);
    expect(await found(whole(known[0] as Uint8Array[]))).toEqual([1]);
  });

  test("that repeat a label, or lack one, are of no known series", async () => {
    const [metric, host, zone] = known[0] as [Uint8Array, Uint8Array, Uint8Array];
    for (const fields of [
      [metric, host],
      [metric, host, host],
      [metric, host, zone, zone],
      [metric, metric, host, zone],
      [host, zone],
    ])
      expect(await found(whole(fields))).toEqual([0]);
  });
});
