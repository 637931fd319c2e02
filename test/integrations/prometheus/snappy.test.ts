import fc from "fast-check";
// @ts-expect-error: the package has no types
import { compress } from "snappyjs";
import { expect, test } from "vitest";
import { paced } from "../../../src/event-loop.ts";
import { Unreadable } from "../../../src/integrations/prometheus/message-walk.ts";
import { unpackSnappy } from "../../../src/integrations/prometheus/snappy.ts";
import { cases } from "../../support/cases.ts";

test("what another one has packed is unpacked", async () => {
  const repeating = fc.tuple(fc.string({ maxLength: 20 }), fc.nat({ max: 5000 })).map(([text, n]) => text.repeat(n));
  await fc.assert(
    fc.asyncProperty(fc.oneof(repeating, fc.string({ maxLength: 3000 })), async (text) => {
      const block = compress(Buffer.from(text)) as Uint8Array;
      expect(Buffer.from(await unpackSnappy(block, paced())).toString()).toBe(text);
    }),
  );
});

test("any bytes are a block of their declared length, or refused", async () => {
  const bytes = fc.tuple(fc.nat({ max: 200 }), fc.uint8Array({ maxLength: 100 }));
  await fc.assert(
    fc.asyncProperty(bytes, async ([length, rest]) => {
      const block = Buffer.concat([Buffer.from([length & 127]), rest]);
      const unpacked = await unpackSnappy(block, paced()).catch((error: unknown) => error);
      if (unpacked instanceof Uint8Array) expect(unpacked).toHaveLength(length & 127);
      else expect(unpacked).toBeInstanceOf(Unreadable);
    }),
    { numRuns: cases(1000) },
  );
});

test("a length that so few bytes cannot come to is refused before memory is taken", async () => {
  await expect(unpackSnappy(Buffer.from([0xff, 0xff, 0xff, 0x07, 0, 0]), paced())).rejects.toThrow(Unreadable);
  // As many times longer as a block can unpack to: copies of 64 bytes that take three.
  const copies = 10_000;
  const total = 1 + 64 * copies;
  const length = [(total & 127) | 128, ((total >> 7) & 127) | 128, total >> 14];
  const block = Buffer.concat([Buffer.from([...length, 0, 65]), Buffer.alloc(3 * copies, Buffer.from([0xfe, 1, 0]))]);
  expect(await unpackSnappy(block, paced())).toHaveLength(total);
});
