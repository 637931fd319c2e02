import { once } from "node:events";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { readBody } from "../../src/transcoding/body.ts";

test("a stream that is reset before its body is read is known to be gone at once", async () => {
  const server = http2.createServer();
  await once(server.listen(0), "listening");
  const client = http2.connect(`http://localhost:${(server.address() as AddressInfo).port}`);
  const stream = client.request({ ":method": "POST", ":path": "/" }).on("error", () => {});
  const [request] = (await once(server, "request")) as [http2.Http2ServerRequest];
  stream.close(http2.constants.NGHTTP2_CANCEL);
  await once(request, "close");
  const limits = { bytesMax: 100, idleMs: 60_000, received: () => {} };
  await expect(readBody(request, limits)).rejects.toMatchObject({ code: Code.Canceled });
  client.destroy();
  server.close();
});
