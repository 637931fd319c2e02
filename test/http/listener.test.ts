import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { httpListener } from "../../src/http/listener.ts";
import { closing, flag, frame, frameType, openFrames, openSocket, post } from "../support/frames.ts";
import { served, testPort } from "../support/port.ts";

/** The requests that were begun, and the answers that they wait for. */
const begun: { path: string; response: ServerResponse }[] = [];
let ended = 0; // of those for /body
const listener = httpListener({
  tls: undefined,
  connectionsMax: 100,
  stallMs: 60_000,
  onRequest(request, response) {
    begun.push({ path: request.url ?? "", response: response as ServerResponse });
    if (request.url === "/body") request.on("end", () => ended++).resume();
    if (request.url === "/end" && "stream" in request) request.stream.session?.destroy();
  },
});
afterAll(() => listener.destroy());
listener.server.listen(0, "127.0.0.1");
await once(listener.server, "listening");
const url = `http://127.0.0.1:${(listener.server.address() as AddressInfo).port}`;

beforeEach(() => void begun.splice(0));

const repeated = (count: number, make: (stream: number) => Uint8Array) =>
  Buffer.concat(Array.from({ length: count }, (_, i) => make(2 * i + 1)));

test("an empty body that comes with its head ends for the request, too", async () => {
  const { socket } = await openFrames(url);
  const empty = (stream: number) => frame(frameType.data, flag.endStream, stream);
  socket.write(
    Buffer.concat([1, 3, 5, 7, 9, 11].map((stream) => Buffer.concat([post(stream, "/body", {}), empty(stream)]))),
  );
  await expect.poll(() => ended).toBe(6);
  socket.destroy();
});

test("streams of an HTTP/2 connection that has ended are not begun", async () => {
  const { socket } = await openFrames(url);
  socket.write(repeated(100, (stream) => post(stream, "/end", {}, flag.endHeaders | flag.endStream)));
  await closing(socket);
  await sleep(20);
  expect(begun).toHaveLength(1);
});

describe("requests that come at once over HTTP/1.1", () => {
  const requests = ["/1", "/2", "/3"].map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join("");

  test("are begun one after the other", async () => {
    const socket = await openSocket(url);
    socket.write(requests);
    for (const [i, path] of ["/1", "/2", "/3"].entries()) {
      await expect.poll(() => begun.length).toBe(i + 1);
      await sleep(20);
      expect(begun.map((each) => each.path)).toHaveLength(i + 1);
      expect(begun[i]?.path).toBe(path);
      begun[i]?.response.end();
    }
    socket.destroy();
  });

  test("are not begun when the client has left", async () => {
    const socket = await openSocket(url);
    socket.write(requests);
    await expect.poll(() => begun.length).toBe(1);
    socket.destroy();
    await closing(socket);
    await expect.poll(() => begun[0]?.response.closed).toBe(true);
    await sleep(20);
    expect(begun).toHaveLength(1);
  });
});

describe("behind a request that is being answered over HTTP/1.1", () => {
  const first = "GET /1 HTTP/1.1\r\nhost: x\r\n\r\n";

  async function sent(behind: string) {
    const socket = await openSocket(url);
    let received = "";
    socket.on("data", (bytes) => {
      received += bytes;
    });
    socket.write(first + behind);
    await expect.poll(() => begun.length).toBe(1);
    await sleep(20);
    return { socket, received: () => received };
  }

  test("what is broken is not answered in its place", async () => {
    const { socket, received } = await sent("rubbish\r\n\r\n");
    if (!socket.destroyed) await closing(socket);
    expect(received()).toBe("");
  });

  test("one without a Host is refused when its turn comes", async () => {
    const { socket, received } = await sent("GET /2 HTTP/1.1\r\n\r\n");
    expect(received()).toBe("");
    begun[0]?.response.end("first");
    await closing(socket);
    expect(received()).toMatch(/^HTTP\/1\.1 200 OK.*first.*HTTP\/1\.1 400 Bad Request/s);
  });

  test("nothing is begun once the connection is told to close", async () => {
    const { socket } = await sent(first);
    begun[0]?.response.setHeader("connection", "close").end();
    await closing(socket);
    await sleep(20);
    expect(begun).toHaveLength(1);
  });

  test("only this many wait", async () => {
    const { socket } = await sent(first.repeat(200));
    if (!socket.destroyed) await closing(socket);
    expect(begun).toHaveLength(1);
  });
});

describe("a gRPC message that comes in pieces", async () => {
  let calls = 0;
  const searchEvents = () => {
    calls += 1;
    return {};
  };
  const port = await testPort([served(EventQueryService, { searchEvents })], { settings: { plaintext: true } });
  const key = (await port.key()).text;
  const lastCode = () => port.lines.findLast((line) => line.rpc?.endsWith("SearchEvents"))?.code;

  async function sendPieces(...pieces: number[][]) {
    const headers = { "service-api-key": key, "content-type": "application/grpc", te: "trailers" };
    const { socket } = await openFrames(port.url);
    socket.write(post(1, `/${EventQueryService.typeName}/SearchEvents`, headers));
    for (const piece of pieces) {
      socket.write(frame(frameType.data, 0, 1, Buffer.from(piece)));
      await sleep(5);
    }
    return socket;
  }

  test("is a call when it is whole", async () => {
    const socket = await sendPieces([0], [0, 0], [0, 2], [10], [0]);
    socket.write(frame(frameType.data, flag.endStream, 1));
    await expect.poll(lastCode).toBe("OK");
    expect(calls).toBe(1);
    socket.destroy();
  });

  test("is refused by its length at once, wherever that is cut", async () => {
    const socket = await sendPieces([0], [6, 0], [0, 0], [1]);
    await sleep(300);
    socket.destroy(); // before that the rest may still come, and the request is not over
    await expect.poll(lastCode).toBe("RESOURCE_EXHAUSTED");
  });

  test("is no call when the client leaves in the middle", async () => {
    calls = 0;
    const socket = await sendPieces([0, 0, 0, 0, 9, 1]);
    socket.destroy();
    await expect.poll(lastCode).toBe("CANCELLED");
    expect(calls).toBe(0);
  });
});
