import http2 from "node:http2";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { afterAll, describe, expect, test } from "vitest";
import { EventQueryService, WatchEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { codeOf, envelope, openHttp2 } from "../support/clients.ts";
import { flag, frame, frameType, openFrames, post, uint32 } from "../support/frames.ts";
import { served, testPort } from "../support/port.ts";

const KiB = 1024;
const MiB = 1024 * KiB;
const stallMs = 400;
let answerBytes = 100 * KiB;
let watched: "quiet" | "busy" = "busy";
let watches = 0;
const services = [
  served(EventQueryService, {
    searchEvents: () => ({ results: [{ name: "x".repeat(answerBytes) }] }),
    async *watchEvents(_request, context) {
      const aborted = new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
      const quiet = watched === "quiet";
      const text = quiet ? "" : "x".repeat(1000);
      watches += 1;
      try {
        for (;;) {
          yield { cursor: text };
          await Promise.race([aborted, sleep(quiet ? 60_000 : 20)]);
          if (context.signal.aborted) return;
        }
      } finally {
        watches -= 1;
      }
    },
  }),
];
const port = await testPort(services, { settings: { streamIdleMs: stallMs } });
const patient = await testPort(services, { database: port.database, settings: { answerBytesMax: 8 * MiB } });
const { text: key } = await port.key();
const searchPath = "/belfry.events.v1.EventQueryService/SearchEvents";
const watchPath = "/belfry.events.v1.EventQueryService/WatchEvents";
const closing: (() => void)[] = [];
afterAll(() => {
  for (const close of closing) close();
});

/** A connection over HTTP/2 whose windows are so large. */
async function session(initialWindowSize: number, { url } = port) {
  const made = http2.connect(url, { settings: { initialWindowSize } });
  made.on("error", () => {});
  closing.push(() => made.destroy());
  await new Promise((resolve) => made.once("remoteSettings", resolve));
  return made;
}

interface Sent {
  stream: http2.ClientHttp2Stream;
  /** The code that the stream was reset with; "open" when it was not within a time. */
  reset: Promise<number | "open">;
}

function send(
  on: http2.ClientHttp2Session,
  path: string,
  type: string,
  body: Uint8Array,
  withinMs = 10 * stallMs,
): Sent {
  const stream = on.request({ ":method": "POST", ":path": path, "content-type": type, "service-api-key": key });
  stream.on("error", () => {});
  const reset = new Promise<number | "open">((resolve) => {
    stream.on("close", () => resolve(stream.rstCode));
    setTimeout(resolve, withinMs, "open").unref();
  });
  stream.end(body);
  return { stream, reset };
}

const watchRequest = create(WatchEventsRequestSchema, { query: {} });
const binary = toBinary(WatchEventsRequestSchema, watchRequest);
const json = Buffer.from(toJsonString(WatchEventsRequestSchema, watchRequest));
const search = Buffer.from('{"query":{}}');
const calm = http2.constants.NGHTTP2_ENHANCE_YOUR_CALM;

const answers = [
  ["/v1", "/v1/events:search", "application/json", search],
  ["gRPC", searchPath, "application/grpc+json", envelope(search)],
  ["gRPC-Web", searchPath, "application/grpc-web+json", envelope(search)],
  ["Connect", searchPath, "application/json", search],
] as const;

const streams = [
  ["/v1", "/v1/events:watch", "application/json", json],
  ["gRPC", watchPath, "application/grpc", envelope(binary)],
  ["gRPC-Web", watchPath, "application/grpc-web", envelope(binary)],
  ["Connect", watchPath, "application/connect+proto", envelope(binary)],
] as const;

describe.each(answers)("an answer over %s and HTTP/2", (_name, path, type, body) => {
  test("of which nothing is taken is cut after the time that it may wait", async () => {
    expect(await send(await session(0), path, type, body).reset).toBe(calm);
  });
});

describe.each(streams)("a stream over %s and HTTP/2", (_name, path, type, body) => {
  test("of which nothing is taken is cut, and its handler ends", async () => {
    watched = "busy";
    expect(await send(await session(0), path, type, body).reset).toBe(calm);
    await expect.poll(() => watches).toBe(0);
  });

  test("that is taken goes on, and so does a quiet one", async () => {
    watched = "busy";
    const busy = send(await session(1 * MiB), path, type, body, 5 * stallMs);
    busy.stream.resume();
    await expect.poll(() => watches).toBe(1);
    watched = "quiet";
    const quiet = send(await session(1 * MiB), path, type, body, 5 * stallMs);
    quiet.stream.resume();
    expect([await busy.reset, await quiet.reset]).toEqual(["open", "open"]);
    busy.stream.close();
    quiet.stream.close();
    await expect.poll(() => watches).toBe(0);
  });
});

test("an answer that is taken slowly, and not too slowly, comes whole", async () => {
  answerBytes = 100 * KiB;
  const connection = await session(1 * KiB);
  const { stream, reset } = send(connection, searchPath, "application/json", search, 60_000);
  let bytes = 0;
  stream.on("data", (piece: Uint8Array) => {
    bytes += piece.byteLength;
    stream.pause();
    setTimeout(() => stream.resume(), 15);
  });
  expect(await reset).toBe(0);
  expect(bytes).toBeGreaterThan(answerBytes);
});

test("an answer that is taken byte by byte is cut", async () => {
  answerBytes = 4 * KiB;
  const { socket } = await openFrames(port.url);
  closing.push(() => socket.destroy());
  const headers = { "content-type": "application/json", "service-api-key": key, "x-request-id": "byte-by-byte" };
  socket.write(frame(frameType.settings, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(0)])));
  socket.write(post(1, searchPath, headers));
  socket.write(frame(frameType.data, flag.endStream, 1, search));
  const taking = setInterval(() => socket.write(frame(frameType.windowUpdate, 0, 1, uint32(1))), stallMs / 10);
  closing.push(() => clearInterval(taking));
  expect(await port.lineOf("byte-by-byte")).toMatchObject({ code: "DEADLINE_EXCEEDED" });
});

test("over HTTP/1.1 a quiet stream goes on", async () => {
  watched = "quiet";
  const stop = new AbortController();
  const headers = { "content-type": "application/json", "service-api-key": key };
  const answer = await fetch(`${port.url}/v1/events:watch`, {
    method: "POST",
    headers,
    body: json,
    signal: stop.signal,
  });
  const reader = answer.body?.getReader();
  await reader?.read();
  const next = reader?.read().then(
    () => "ended",
    () => "ended",
  );
  expect(await Promise.race([next, sleep(5 * stallMs, "open")])).toBe("open");
  stop.abort();
  await expect.poll(() => watches).toBe(0);
});

test("over HTTP/1.1 an answer of which nothing is taken is cut with its connection", async () => {
  answerBytes = 6 * MiB;
  const { hostname, port: number } = new URL(port.url);
  const socket = connect(Number(number), hostname);
  closing.push(() => socket.destroy());
  socket.on("error", () => {});
  const head = `POST /v1/events:search HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nservice-api-key: ${key}\r\n`;
  const request = `${head}content-length: ${search.byteLength}\r\n\r\n${search}`;
  socket.pause();
  socket.write(request.repeat(4));
  await sleep(6 * stallMs);
  let bytes = 0;
  socket.on("data", (piece: Buffer) => {
    bytes += piece.byteLength;
  });
  socket.resume();
  await new Promise((resolve) => socket.once("close", resolve));
  expect(bytes).toBeLessThan(4 * answerBytes);
});

describe("bytes that wait for their clients", () => {
  test("are bounded for a connection; further calls on it are refused, those of others are answered", async () => {
    answerBytes = 1000 * KiB;
    const connection = await session(0, patient);
    const sent = Array.from({ length: 10 }, () => send(connection, searchPath, "application/json", search));
    // A quarter of 8 MiB holds two of them.
    await expect.poll(() => sent.filter(({ stream }) => stream.closed).length).toBe(8);
    const refused = send(connection, "/v1/events:search", "application/json", search);
    const status = new Promise((resolve) => refused.stream.on("response", (head) => resolve(head[":status"])));
    refused.stream.resume();
    expect(await status).toBe(429);
    answerBytes = 10;
    const other = openHttp2(patient);
    const headers = { "content-type": "application/json", "service-api-key": key };
    const answer = await other.send({ path: searchPath, headers, body: [search] });
    expect(codeOf(answer)).toBe(0);
    other.close();
    connection.destroy();
    answerBytes = 100 * KiB;
  });
});
