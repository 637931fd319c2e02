import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { unpack } from "../../src/wire/unpack.ts";

const outgrew = (error: unknown) => error instanceof RangeError;
const MiB = 1024 * 1024;
const tooLarge = () => new Error("too large");
const packed = (bytes: number) => new Uint8Array(bytes);

/** Decompression to so many bytes, and how many of them were held at once. */
function growing(plainBytes: number) {
  const seen = { held: 0, most: 0, tries: 0 };
  async function decompress(bytesMax: number) {
    const bytes = Math.min(plainBytes, bytesMax);
    seen.tries += 1;
    seen.held += bytes;
    seen.most = Math.max(seen.most, seen.held);
    await sleep(1);
    seen.held -= bytes;
    if (plainBytes > bytesMax) throw new RangeError("it outgrew its room");
    return plainBytes;
  }
  return { decompress, seen };
}

const together = <T>(count: number, work: () => Promise<T>) => Promise.allSettled(Array.from({ length: count }, work));

test("what grows little is done once, a few at a time", async () => {
  const { decompress, seen } = growing(5 * MiB);
  const all = await together(100, () => unpack(packed(MiB), 64 * MiB, decompress, tooLarge, outgrew));
  expect(all.every(({ status }) => status === "fulfilled")).toBe(true);
  expect(seen.tries).toBe(100);
  expect(seen.most).toBeLessThanOrEqual(4 * 5 * MiB);
});

test("bombs are done one at a time; too many of them are told to come again", async () => {
  const { decompress, seen } = growing(64 * MiB);
  const all = await together(400, () => unpack(packed(64 * 1024), 64 * MiB, decompress, tooLarge, outgrew));
  expect(seen.most).toBeLessThanOrEqual(64 * MiB + 4 * MiB);
  const refused = all.filter((each) => each.status === "rejected");
  expect(refused.length).toBeGreaterThan(0);
  expect(refused[0]?.reason).toMatchObject({ code: Code.ResourceExhausted });
  expect(refused[0]?.reason.metadata.get("retry-after")).toBe("1");
});

test("gzip that says itself that it is too large is not even begun", async () => {
  const { decompress, seen } = growing(MiB);
  const large = gzipSync(Buffer.alloc(MiB));
  await expect(unpack(large, MiB - 1, decompress, tooLarge, outgrew)).rejects.toThrow("too large");
  expect(seen.tries).toBe(0);
  await expect(unpack(large, MiB, decompress, tooLarge, outgrew)).resolves.toBe(MiB);
});

test("what outgrows the largest size, or fails otherwise, says why", async () => {
  await expect(unpack(packed(10), MiB, growing(2 * MiB).decompress, tooLarge, outgrew)).rejects.toThrow("outgrew");
  const broken = () => Promise.reject(new Error("no gzip"));
  await expect(unpack(packed(10), MiB, broken, tooLarge, outgrew)).rejects.toThrow("no gzip");
});
