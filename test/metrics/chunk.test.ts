import fc from "fast-check";
import { expect, test } from "vitest";
import { DamagedBytes } from "../../src/metrics/codec/bits.ts";
import { CHUNK_POINTS_MAX, decodeChunk, encodeChunk, type Points } from "../../src/metrics/codec/chunk.ts";
import { cases } from "../support/cases.ts";

const furthest = 2 ** 50;
const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
const decimal = fc
  .tuple(fc.integer({ min: -1_000_000_000, max: 1_000_000_000 }), fc.integer({ min: 0, max: 6 }))
  .map(([number, digits]) => number / 10 ** digits);

/** Times as scrapes have them: a step, some jitter, some gaps. */
const scraped = fc
  .record({
    firstMs: fc.integer({ min: 0, max: 2_000_000_000_000 }),
    stepMs: fc.constantFrom(1, 1000, 10_000, 60_000, 3_600_000),
    skips: fc.array(fc.constantFrom(0, 0, 0, 0, 0, 1, 7, 5000), { maxLength: 400 }),
    jitterMs: fc.constantFrom(0, 0.3),
  })
  .map(({ firstMs, stepMs, skips, jitterMs }) => {
    let time = firstMs;
    return [
      firstMs,
      ...skips.map((skip, i) => (time += Math.max(1, Math.round(stepMs * (1 + skip + jitterMs * Math.sin(i)))))),
    ];
  });
const anyTimes = fc
  .uniqueArray(fc.integer({ min: -furthest, max: furthest }), { minLength: 1, maxLength: 300 })
  .map((times) => times.sort((a, b) => a - b));

const points = fc.oneof(scraped, anyTimes).chain((times) =>
  fc
    .oneof(
      fc.array(finite, { minLength: times.length, maxLength: times.length }),
      fc.array(decimal, { minLength: times.length, maxLength: times.length }),
      fc.array(fc.constantFrom(0, -0, 5e-324, 1.7976931348623157e308), {
        minLength: times.length,
        maxLength: times.length,
      }),
      fc.array(fc.integer({ min: -(2 ** 50), max: 2 ** 50 }), { minLength: times.length, maxLength: times.length }),
    )
    .map((values): Points => ({ times: Float64Array.from(times), values: Float64Array.from(values) })),
);

function same(one: Points, other: Points) {
  expect(one.times).toEqual(other.times);
  // Object.is, value by value: -0 is not 0.
  expect(one.values).toEqual(other.values);
}

test("a chunk gives back every point, bit by bit", () => {
  fc.assert(
    fc.property(points, (sent) => same(decodeChunk(encodeChunk(sent)), sent)),
    { numRuns: cases(500) },
  );
});

test.each([1, 2, 3, 127, 128, 129, 8640, CHUNK_POINTS_MAX])("a chunk of %i points gives them back", (count) => {
  const times = Float64Array.from({ length: count }, (_, i) => 1_700_000_000_000 + i * 10_000 + (i % 7));
  const values = Float64Array.from({ length: count }, (_, i) => Math.sin(i) * 1e9);
  same(decodeChunk(encodeChunk({ times, values })), { times, values });
});

test("steps that differ by as much as a width just holds, or by one more, are given back", () => {
  for (const bits of [7, 9, 12, 20, 32]) {
    for (const more of [-1, 0, 1]) {
      const steps = [2 ** bits, 2 ** bits + 2 ** (bits - 1) + more];
      const times = Float64Array.of(0, steps[0] as number, (steps[0] as number) + (steps[1] as number));
      same(decodeChunk(encodeChunk({ times, values: times })), { times, values: times });
    }
  }
});

test("a chunk that lies anywhere in a larger buffer is read", () => {
  const times = Float64Array.of(1, 2, 3);
  const values = Float64Array.of(0.1, 0.2, 1 / 3);
  const chunk = encodeChunk({ times, values });
  const larger = new Uint8Array(chunk.length + 7).fill(255);
  larger.set(chunk, 3);
  same(decodeChunk(larger.subarray(3, 3 + chunk.length)), { times, values });
});

/** What reading bytes may end in. */
function outcome(bytes: Uint8Array): "points" | "damaged" {
  try {
    const { times, values } = decodeChunk(bytes);
    expect(times.length).toBe(values.length);
    expect(times.length).toBeLessThanOrEqual(CHUNK_POINTS_MAX);
    return "points";
  } catch (error) {
    expect(error).toBeInstanceOf(DamagedBytes);
    return "damaged";
  }
}

test("damaged chunks are refused or read as other points, in bounded time and memory", () => {
  const damage = fc.oneof(
    fc.record({ kind: fc.constant("cut" as const), at: fc.nat() }),
    fc.record({ kind: fc.constant("flip" as const), at: fc.nat(), bit: fc.nat({ max: 7 }) }),
    fc.record({ kind: fc.constant("fill" as const), at: fc.nat(), byte: fc.nat({ max: 255 }) }),
  );
  fc.assert(
    fc.property(points, fc.array(damage, { minLength: 1, maxLength: 8 }), (sent, damages) => {
      let bytes = encodeChunk(sent).slice();
      for (const each of damages) {
        const at = each.at % Math.max(1, bytes.length);
        if (each.kind === "cut") bytes = bytes.slice(0, at);
        else if (each.kind === "flip") bytes[at] = (bytes[at] ?? 0) ^ (1 << each.bit);
        else bytes.fill(each.byte, at);
      }
      outcome(bytes);
    }),
    { numRuns: cases(1000) },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void outcome(Uint8Array.of(1, ...bytes))),
    { numRuns: cases(1000) },
  );
});

test("every cut of a chunk is refused", () => {
  for (const factor of [1, Math.PI]) {
    const times = Float64Array.from({ length: 300 }, (_, i) => i * 1000 + (i % 3));
    const chunk = encodeChunk({ times, values: times.map((time) => (time % 7) * factor) });
    for (let length = 0; length < chunk.length; length++) expect(outcome(chunk.subarray(0, length))).toBe("damaged");
    expect(outcome(Uint8Array.of(...chunk, 0))).toBe("damaged");
  }
});

/** A generator of its own, so that the sizes are the same each time. */
function random(seed: number) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function normal(next: () => number) {
  return Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
}

/** Bytes a point of a day of points every 10 s. */
function bytesAPoint(valueOf: (last: number, next: () => number) => number): number {
  const next = random(7);
  const times = Float64Array.from({ length: 8640 }, (_, i) => 1_700_006_400_000 + i * 10_000);
  let last = 50;
  const values = times.map(() => (last = valueOf(last, next)));
  return encodeChunk({ times, values }).length / times.length;
}

test("a day of points every 10 s takes the bytes that docs/formats/chunk.md tells", () => {
  const sizes = {
    constant: bytesAPoint((last) => last),
    uniform: bytesAPoint((_last, next) => Math.round(next() * 10_000) / 100),
    walk: bytesAPoint((last, next) => Math.round(last * 100 + normal(next) * 50) / 100),
    counter: bytesAPoint((last, next) => last + Math.floor(next() * 100)),
    float: bytesAPoint((_last, next) => next() + next() / 2 ** 32),
  };
  const told = Object.fromEntries(Object.entries(sizes).map(([name, bytes]) => [name, bytes.toFixed(2)]));
  expect(told).toEqual({ constant: "0.02", uniform: "1.77", walk: "1.08", counter: "0.89", float: "7.21" });
});
