import type { DescMessage } from "@bufbuild/protobuf";
import { fromJsonString, toJson, toJsonString } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { jsonReader } from "../../src/transcoding/json/read-json.ts";
import { finishScan, next, scanOf } from "../../src/transcoding/json/scan.ts";
import { jsonWriter } from "../../src/transcoding/json/write-json.ts";
import { cases } from "../support/cases.ts";
import { anyMessage, bytesOf } from "./messages.ts";
import { foreign, foreignMessage } from "./schema.ts";

const reader = jsonReader({ registry: foreign });
const writer = jsonWriter(foreign);
const numRuns = cases(600);

function read(desc: DescMessage, text: string): unknown {
  const s = scanOf(text, { bytes: Buffer.from(text) });
  next(s);
  const message = reader.message(desc)(s);
  finishScan(s);
  return message;
}

const write = (desc: DescMessage, message: unknown) => JSON.stringify(writer.message(desc)(message as never));

/** The value of one field after a way through text. */
function through(type: string, field: string, value: unknown): unknown {
  const desc = foreignMessage(type);
  const text = write(desc, { [field]: value });
  return (read(desc, text) as Record<string, unknown>)[field];
}

describe("any message is itself again after its JSON", () => {
  for (const name of ["Everything", "Clause", "Book", "Editions", "Legacy"]) {
    test(name, () => {
      const desc = foreignMessage(name);
      fc.assert(
        fc.property(anyMessage(desc), (message) => {
          expect(bytesOf(desc, read(desc, write(desc, message)))).toBe(bytesOf(desc, message));
        }),
        { numRuns },
      );
    });

    test(`${name}, written by protobuf-es`, () => {
      const desc = foreignMessage(name);
      fc.assert(
        fc.property(anyMessage(desc), fc.boolean(), (message, alwaysEmitImplicit) => {
          fc.pre(!hasMinusZero(message));
          const text = toJsonString(desc, message, { registry: foreign, alwaysEmitImplicit });
          expect(bytesOf(desc, read(desc, text))).toBe(bytesOf(desc, message));
        }),
        { numRuns },
      );
    });

    test(`${name}, read by protobuf-es`, () => {
      const desc = foreignMessage(name);
      fc.assert(
        fc.property(anyMessage(desc), (message) => {
          const theirs = fromJsonString(desc, write(desc, message), { registry: foreign });
          expect(bytesOf(desc, theirs)).toBe(bytesOf(desc, message));
        }),
        { numRuns },
      );
    });
  }
});

function hasMinusZero(value: unknown): boolean {
  if (typeof value === "number") return Object.is(value, -0);
  return typeof value === "object" && value !== null && Object.values(value).some(hasMinusZero);
}

describe("numbers and times keep every digit", () => {
  test("64-bit integers over their whole range", () => {
    const signed = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    const unsigned = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    fc.assert(
      fc.property(signed, unsigned, (a, b) => {
        expect(through("Everything", "fInt64", a)).toBe(a);
        expect(through("Everything", "fSfixed64", a)).toBe(a);
        expect(through("Everything", "fUint64", b)).toBe(b);
        const everything = foreignMessage("Everything");
        expect(read(everything, `{"fInt64":${a},"fFixed64":${b}}`)).toMatchObject({ fInt64: a, fFixed64: b });
      }),
      { numRuns },
    );
    for (const value of [2n ** 63n, -(2n ** 63n) - 1n]) {
      expect(() => read(foreignMessage("Everything"), `{"fInt64":${value}}`)).toThrow("must be from");
      expect(() => read(foreignMessage("Everything"), `{"fInt64":"${value}"}`)).toThrow("must be from");
    }
  });

  test("integers however their decimal point and exponent stand", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.integer({ min: -25, max: 25 }),
        (value, shift) => {
          const [, sign, digits] = /^(-?)(\d+)$/.exec(String(value)) as unknown as [string, string, string];
          // The same number with its point `shift` places to the left, and an exponent that makes up for it.
          const padded = digits.padStart(Math.max(shift, 0) + 1, "0");
          const point = padded.length - Math.max(shift, 0);
          const moved = shift > 0 ? `${padded.slice(0, point)}.${padded.slice(point)}` : `${digits}.0`;
          const text = `${sign}${moved}e${shift > 0 ? "+" : ""}${Math.max(shift, 0)}`;
          expect(read(foreignMessage("Everything"), `{"fInt64":${text}}`)).toMatchObject({ fInt64: value });
          expect(read(foreignMessage("Everything"), `{"fInt64":"${text}"}`)).toMatchObject({ fInt64: value });
        },
      ),
      { numRuns },
    );
  });

  test("doubles and floats by their bits", () => {
    const bits = fc
      .bigInt({ min: 0n, max: 2n ** 64n - 1n })
      .map((word) => new Float64Array(new BigUint64Array([word]).buffer)[0]);
    const single = fc
      .integer({ min: 0, max: 2 ** 32 - 1 })
      .map((word) => new Float32Array(new Uint32Array([word]).buffer)[0]);
    fc.assert(
      fc.property(bits, single, (a, b) => {
        expect(through("Everything", "fDouble", a)).toBe(a);
        expect(through("Everything", "fFloat", b)).toBe(b);
        expect(through("Everything", "wDouble", a)).toBe(a);
      }),
      { numRuns },
    );
    for (const value of [0, -0, Number.MIN_VALUE, Number.MAX_VALUE, Number.EPSILON, 2 ** 53 + 2, 0.1]) {
      expect(through("Everything", "fDouble", value)).toBe(value);
    }
  });

  test("a float has the fewest digits that tell it from its neighbours", () => {
    const written = (value: number) =>
      write(foreignMessage("Everything"), { fFloat: value }).match(/"fFloat":([^,]*)/)?.[1];
    expect(written(Math.fround(0.1))).toBe("0.1");
    expect(written(Math.fround(3.4028234663852886e38))).toBe("3.4028235e+38");
    expect(written(16777216)).toBe("16777216");
    expect(written(0.1)).toBe("0.1");
  });

  test("Timestamp and Duration to their limits, as protobuf-es reads them", () => {
    for (const type of ["timestamp", "duration"]) {
      const field = foreignMessage("Everything").fields.find(({ name }) => name === type);
      const desc = field?.message as DescMessage;
      fc.assert(
        fc.property(anyMessage(desc), (message) => {
          const text = write(desc, message);
          expect(bytesOf(desc, read(desc, text))).toBe(bytesOf(desc, message));
          expect(bytesOf(desc, fromJsonString(desc, text))).toBe(bytesOf(desc, message));
          expect(bytesOf(desc, read(desc, JSON.stringify(toJson(desc, message))))).toBe(bytesOf(desc, message));
        }),
        { numRuns },
      );
    }
    const everything = foreignMessage("Everything");
    for (const wrong of [
      { timestamp: { seconds: 253402300800n, nanos: 0 } },
      { timestamp: { seconds: -62135596801n, nanos: 0 } },
      { timestamp: { seconds: 0n, nanos: -1 } },
      { duration: { seconds: 315576000001n, nanos: 0 } },
      { duration: { seconds: 1n, nanos: -1 } },
    ]) {
      expect(() => write(everything, wrong)).toThrow("out of range");
    }
  });
});

test("any JSON is read as google.protobuf.Value just as JSON.parse reads it", () => {
  const desc = foreignMessage("Everything").fields.find(({ name }) => name === "value")?.message as DescMessage;
  fc.assert(
    fc.property(fc.json({ stringUnit: "binary", maxDepth: 4 }), (text) => {
      const clean = JSON.stringify(JSON.parse(text));
      expect(write(desc, read(desc, text)).replaceAll("-0", "0")).toBe(clean.replaceAll("-0", "0"));
    }),
    { numRuns },
  );
});
