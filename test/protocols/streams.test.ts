import { once } from "node:events";
import http2 from "node:http2";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import { EventQueryService, WatchEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { envelope } from "../support/clients.ts";
import { served, testPort } from "../support/port.ts";

let ended = 0;
const port = await testPort([
  served(EventQueryService, {
    async *watchEvents() {
      try {
        for (;;) yield { cursor: "x".repeat(100_000) };
      } finally {
        ended += 1;
      }
    },
  }),
]);
const { text: key } = await port.key();
const path = "/belfry.events.v1.EventQueryService/WatchEvents";
const request = envelope(toBinary(WatchEventsRequestSchema, create(WatchEventsRequestSchema, { query: {} })));

/** A watch of which nothing is read yet. */
function openWatch(timeout: string) {
  const session = http2.connect(port.url, { settings: { initialWindowSize: 1000 } });
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "service-api-key": key,
    "content-type": "application/grpc",
    "grpc-timeout": timeout,
  });
  stream.end(request);
  return stream;
}

test("a slow client whose time is over is told so, not that the stream has ended", async () => {
  const stream = openWatch("200m");
  await once(stream, "response");
  // Until its time is over; nothing tells the client before it reads.
  await sleep(400);
  let status: unknown;
  stream.on("trailers", (trailers) => {
    status = trailers["grpc-status"];
  });
  stream.resume();
  await once(stream, "close");
  expect(status).toBe("4");
});

test("the handler of a client that has gone ends", async () => {
  const before = ended;
  const stream = openWatch("60S");
  await once(stream, "response");
  stream.destroy();
  await expect.poll(() => ended).toBe(before + 1);
});

test("a Host that is none is refused with 400", async () => {
  const socket = connect(Number(new URL(port.url).port), "127.0.0.1");
  onTestFinished(() => socket.destroy() as unknown as undefined);
  const head = `POST ${path} HTTP/1.1\r\nHost: %zz\r\nservice-api-key: ${key}\r\ncontent-type: application/grpc-web\r\n`;
  socket.write(`${head}content-length: ${request.length}\r\nconnection: close\r\n\r\n`);
  socket.write(request);
  let text = "";
  socket.on("data", (piece) => {
    text += String(piece);
  });
  await once(socket, "close");
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(text).toContain("the Host header or the path is malformed");
});
