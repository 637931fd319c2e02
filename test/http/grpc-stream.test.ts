import { once } from "node:events";
import { type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { GrpcStream } from "../../src/http/grpc-stream.ts";
import { httpListener } from "../../src/http/listener.ts";
import type { Request } from "../../src/wire/body-reader.ts";
import { endResponse, type Response, sendWithTrailers } from "../../src/wire/send-response.ts";

/** A call that the listener has handed over. */
interface Begun {
  request: Request;
  response: Response;
  sendContinue: (() => void) | undefined;
}

const begun: Begun[] = [];
const listener = httpListener({
  tls: undefined,
  connectionsMax: 10,
  stallMs: 60_000,
  grpcPaths: new Set(["/rpc"]),
  onRequest: (request, response, sendContinue) => void begun.push({ request, response, sendContinue }),
});
listener.server.listen(0, "127.0.0.1");
await once(listener.server, "listening");
const client = connect(`http://127.0.0.1:${(listener.server.address() as AddressInfo).port}`);
afterAll(() => {
  client.destroy();
  listener.destroy();
});
beforeEach(() => void begun.splice(0));

const grpc = { ":method": "POST", ":path": "/rpc", "content-type": "application/grpc" };

async function open(headers: OutgoingHttpHeaders): Promise<Begun & { stream: ClientHttp2Stream }> {
  const stream = client.request(headers);
  stream.on("error", () => {});
  await expect.poll(() => begun.length).toBe(1);
  return { ...(begun[0] as Begun), stream };
}

const trailersOf = async (stream: ClientHttp2Stream) => (await once(stream.resume(), "trailers"))[0];

describe("a request is taken from its HTTP/2 stream", () => {
  test.each([
    ["a unary gRPC call", {}, true],
    ["one with JSON in its envelope", { "content-type": "application/grpc+json" }, true],
    ["one that waits for 100 Continue", { expect: "100-continue" }, true],
    ["gRPC-Web", { "content-type": "application/grpc-web+proto" }, false],
    ["Connect", { "content-type": "application/proto" }, false],
    ["gRPC at another path", { ":path": "/stream" }, false],
    ["gRPC at a path with a query", { ":path": "/rpc?a=1" }, false],
    ["a GET", { ":method": "GET" }, false],
  ])("%s: %s %s", async (_name, headers, bare) => {
    const { request, response, stream } = await open({ ...grpc, ...headers });
    expect(request instanceof GrpcStream).toBe(bare);
    endResponse(response);
    stream.close();
  });
});

describe("a gRPC call on its stream", () => {
  test("reads the body and answers with head, message and trailers", async () => {
    const { request, response, stream } = await open(grpc);
    stream.end("sent");
    const [piece] = await once((request as GrpcStream).stream, "data");
    expect(String(piece)).toBe("sent");
    await expect.poll(() => request.complete).toBe(true);
    response.setHeader("x-request-id", "1");
    const head = once(stream, "response");
    const text = once(stream, "data");
    sendWithTrailers(response, { "content-type": "application/grpc" }, { "grpc-status": "0" }, Buffer.from("answer"));
    expect((await head)[0]).toMatchObject({ ":status": 200, "x-request-id": "1", "x-content-type-options": "nosniff" });
    expect(String((await text)[0])).toBe("answer");
    expect(await trailersOf(stream)).toMatchObject({ "grpc-status": "0" });
  });

  test("is continued once", async () => {
    const { sendContinue, stream } = await open({ ...grpc, expect: "100-continue" });
    const continued = once(stream, "continue");
    sendContinue?.();
    await continued;
    stream.close();
  });

  test("that its client resets is aborted, and closes", async () => {
    const { request, stream } = await open(grpc);
    const closed = once((request as GrpcStream).stream, "close");
    stream.close(8);
    await closed;
    expect({ aborted: request.aborted, destroyed: request.destroyed }).toEqual({ aborted: true, destroyed: true });
  });

  test("is answered after its client has gone without a fault", async () => {
    const { request, response, stream } = await open(grpc);
    stream.close(8);
    await once((request as GrpcStream).stream, "close");
    sendWithTrailers(response, {}, { "grpc-status": "0" }, undefined);
    expect(response.headersSent).toBe(false);
  });

  test("that its client closes without an error, its body unread, is answered without a fault", async () => {
    const { request, response, stream } = await open(grpc);
    stream.write("unread");
    stream.close(0);
    await expect.poll(() => (request as GrpcStream).stream.closed).toBe(true);
    sendWithTrailers(response, {}, { "grpc-status": "0" }, Buffer.from("late"));
    expect(response.headersSent).toBe(false);
  });

  test("that is answered before its body has come discards the rest", async () => {
    const { response, request, stream } = await open(grpc);
    stream.write(Buffer.alloc(100_000));
    sendWithTrailers(response, {}, { "grpc-status": "8" }, undefined);
    expect(await trailersOf(stream)).toMatchObject({ "grpc-status": "8" });
    stream.end(Buffer.alloc(100_000));
    await expect.poll(() => request.complete).toBe(true);
  });
});
