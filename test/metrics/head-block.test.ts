import fc from "fast-check";
import { expect, test } from "vitest";
import { DamagedBytes } from "../../src/metrics/codec/bits.ts";
import { decodeHeadBlock, encodeHeadBlock, ofSeries } from "../../src/metrics/codec/head-block.ts";
import { HEAD_BUCKETS, headRows } from "../../src/metrics/head.ts";

const points = fc.array(
  fc.record({
    series: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 2 ** 33 })),
    time: fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: -(2 ** 50), max: 2 ** 50 })),
    value: fc.double({ noNaN: true, noDefaultInfinity: true }),
  }),
  { maxLength: 200 },
);

test("blocks give back the points of each series in the order of their arrival, each series in its bucket", () => {
  fc.assert(
    fc.property(points, (sent) => {
      const rows = headRows({
        series: Float64Array.from(sent, ({ series }) => series),
        times: Float64Array.from(sent, ({ time }) => time),
        values: Float64Array.from(sent, ({ value }) => value),
      });
      expect(rows.reduce((count, row) => count + row.points.times.length, 0)).toBe(sent.length);
      const read = rows.map(
        ({ bucket, points }) => [bucket, decodeHeadBlock(Buffer.from(encodeHeadBlock(points)))] as const,
      );
      for (const number of new Set(sent.map(({ series }) => series))) {
        const own = sent.filter(({ series }) => series === number);
        const found = read.flatMap(([bucket, block]) => {
          const points = ofSeries(block, number);
          if (points !== undefined) expect(bucket).toBe(number % HEAD_BUCKETS);
          return points ?? [];
        });
        expect(found).toHaveLength(1);
        expect([...(found[0]?.times ?? [])]).toEqual(own.map(({ time }) => time));
        expect([...(found[0]?.values ?? [])]).toEqual(own.map(({ value }) => value));
      }
    }),
  );
});

test("damaged blocks are refused or read as other points, in bounded time and memory", () => {
  const block = encodeHeadBlock({
    series: Float64Array.of(16, 32, 48),
    counts: Uint32Array.of(2, 1, 3),
    times: Float64Array.of(1000, 2000, 1500, 1, 2, 3),
    values: Float64Array.of(1, 2, 3, 4, 5, 6),
  });
  const read = (bytes: Uint8Array) => {
    try {
      decodeHeadBlock(bytes);
    } catch (error) {
      expect(error).toBeInstanceOf(DamagedBytes);
      return "damaged";
    }
    return "points";
  };
  for (let length = 0; length < block.length; length++) expect(read(block.subarray(0, length))).toBe("damaged");
  fc.assert(
    fc.property(fc.nat({ max: block.length - 1 }), fc.nat({ max: 255 }), (at, byte) => {
      const changed = block.slice();
      changed[at] = byte;
      read(changed);
    }),
  );
  fc.assert(fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => void read(Uint8Array.of(1, ...bytes))));
});
