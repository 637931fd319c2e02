import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { unpack } from "../../src/wire/unpack.ts";

const MiB = 1024 * 1024;
const tooLarge = () => new Error("too large");
const together = <T>(count: number, work: () => Promise<T>) => Promise.allSettled(Array.from({ length: count }, work));
const noise = (bytes: number) => Buffer.from(Array.from({ length: bytes }, (_, i) => (i * 2654435761) >>> 24));

test.each([
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["br", brotliCompressSync],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
])("%s is unpacked", async (encoding, pack) => {
  const plain = noise(300_000);
  expect(await unpack(pack(plain), encoding, { bytesMax: MiB, tooLarge })).toEqual(plain);
  await expect(unpack(Buffer.from("no such thing"), encoding, { bytesMax: MiB, tooLarge })).rejects.toMatchObject({
    code: Code.InvalidArgument,
  });
  await expect(unpack(pack(plain).subarray(0, 900), encoding, { bytesMax: 2 ** 32, tooLarge })).rejects.toMatchObject({
    code: Code.InvalidArgument,
  });
});

test("each portion is announced before the next one is made; what is thrown then ends the work", async () => {
  const portions: number[] = [];
  const packed = brotliCompressSync(Buffer.alloc(4 * MiB));
  function received(bytes: number) {
    portions.push(bytes);
    if (portions.length === 3) throw new Error("no room");
  }
  await expect(unpack(packed, "br", { bytesMax: 8 * MiB, tooLarge, received })).rejects.toThrow("no room");
  expect(portions).toHaveLength(3);
  expect(Math.max(...portions)).toBeLessThanOrEqual(256 * 1024);
});

test("bombs are unpacked one at a time", async () => {
  const packed = brotliCompressSync(Buffer.alloc(2 * MiB));
  let grown = 0;
  let most = 0;
  async function one() {
    let bytes = 0;
    let large = false;
    function received(portion: number) {
      bytes += portion;
      if (large || bytes <= MiB) return;
      large = true;
      grown += 1;
      most = Math.max(most, grown);
    }
    try {
      await unpack(packed, "br", { bytesMax: 8 * MiB, tooLarge, received });
    } finally {
      if (large) grown -= 1;
    }
  }
  await together(20, one);
  expect(most).toBe(1);
}, 60_000);

test("gzip that says itself that it is too large is not even begun", async () => {
  const received = () => expect.fail("it was begun");
  const large = gzipSync(Buffer.alloc(MiB));
  await expect(unpack(large, "gzip", { bytesMax: MiB - 1, tooLarge, received })).rejects.toThrow("too large");
  expect(await unpack(large, "gzip", { bytesMax: MiB, tooLarge })).toHaveLength(MiB);
});

test("what outgrows the largest size is too large", async () => {
  const bomb = brotliCompressSync(Buffer.alloc(2 * MiB));
  await expect(unpack(bomb, "br", { bytesMax: MiB, tooLarge })).rejects.toThrow("too large");
});
