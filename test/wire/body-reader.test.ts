import { once } from "node:events";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { bodyReader, keep } from "../../src/wire/body-reader.ts";
import { messageTooLarge } from "../../src/wire/status.ts";

/** What is held of pieces of these sizes, and the bytes that they are made of. */
function held(sizes: readonly number[]) {
  const all = Buffer.alloc(sizes.reduce((sum, size) => sum + size, 0)).map((_, i) => i % 251);
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const size of sizes) {
    keep(pieces, all.subarray(at, at + size));
    at += size;
  }
  return { pieces, all };
}

test.for<[string, number[]]>([
  ["byte by byte", Array(300_000).fill(1)],
  ["a byte between longer ones", Array.from({ length: 2000 }, (_, i) => (i % 2 === 0 ? 300 : 1))],
  ["shorter and shorter, again and again", Array.from({ length: 5000 }, (_, i) => 20 - (i % 20))],
])("of a body that comes in small pieces few are held: %s", ([, sizes]) => {
  const { pieces, all } = held(sizes);
  expect(Buffer.concat(pieces).equals(all)).toBe(true);
  expect(pieces.length).toBeLessThan(all.byteLength / 1000 + 100);
});

test("what comes in large pieces is not copied", () => {
  const { pieces, all } = held([16_384, 16_384, 9000]);
  expect(pieces.map(({ byteLength }) => byteLength)).toEqual([16_384, 16_384, 9000]);
  expect(pieces.every(({ buffer }) => buffer === all.buffer)).toBe(true);
});

test("a stream that is reset before its body is read is known to be gone at once", async () => {
  const server = http2.createServer();
  await once(server.listen(0), "listening");
  const client = http2.connect(`http://localhost:${(server.address() as AddressInfo).port}`);
  const stream = client.request({ ":method": "POST", ":path": "/" }).on("error", () => {});
  const [request] = (await once(server, "request")) as [http2.Http2ServerRequest];
  stream.close(http2.constants.NGHTTP2_CANCEL);
  await once(request, "close");
  const limits = { bytesMax: 100, idleMs: 60_000, tooLarge: () => messageTooLarge(100) };
  await expect(bodyReader(request, limits).whole()).rejects.toMatchObject({ code: Code.Canceled });
  client.destroy();
  server.close();
});
