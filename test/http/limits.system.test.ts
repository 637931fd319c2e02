import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import {
  DataReceiverService,
  PutEventRequestSchema,
  PutEventsRequestSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { codeOf, envelope, httpVersions, openHttp2, protocols, raw, transport } from "../support/clients.ts";
import { served, testPort } from "../support/port.ts";

const KiB = 1024;
let read = 0;
const services = [
  served(DataReceiverService, {
    putEvents: ({ events }) => ({ succeeded: events.length }),
    async putEvent(requests) {
      read = 0;
      for await (const _ of requests) read += 1;
      return { succeeded: read };
    },
  }),
  served(EntityService, { searchEntities: () => ({}) }),
];
const bounds = { messageBytesMax: 64 * KiB, receiverBytesMax: 256 * KiB, streamBytesMax: 1024 * KiB };
const port = await testPort(services, { settings: { ...bounds, streamIdleMs: 3000 } });
const impatient = await testPort(services, { database: port.database, settings: { ...bounds, streamIdleMs: 300 } });
const { text: key } = await port.key();
const events = "/belfry.receiver.v1.DataReceiverService/PutEvents";
const stream = "/belfry.receiver.v1.DataReceiverService/PutEvent";
const entities = "/belfry.entities.v1.EntityService/SearchEntities";

const message = (bytes: number) => create(PutEventsRequestSchema, { events: [{ body: "x".repeat(bytes) }] });
const code = (call: Promise<unknown>) =>
  call.then(
    () => 0,
    (error) => ConnectError.from(error).code,
  );

describe.each(protocols)("%s", (protocol) => {
  const client = createClient(DataReceiverService, transport(port, protocol, { "service-api-key": key }));

  test("a message at the service's bound is taken, a larger one is code 8", async () => {
    expect(await code(client.putEvents(message(255 * KiB)))).toBe(0);
    expect(await code(client.putEvents(message(257 * KiB)))).toBe(Code.ResourceExhausted);
  });
});

describe.each(httpVersions)("HTTP/%s", (version) => {
  const headers = { "content-type": "application/json", "service-api-key": key };

  test("a service of queries has the smaller bound", async () => {
    const body = [Buffer.from(JSON.stringify({ x: "x".repeat(100 * KiB) }))];
    expect(codeOf(await raw(port, version, { path: entities, headers, body }))).toBe("resource_exhausted");
    expect(codeOf(await raw(port, version, { path: events, headers, body }))).toBe(0);
    expect((await raw(port, version, { path: "/v1/modelcontext/entities:search", headers, body })).status).toBe(413);
    expect((await raw(port, version, { path: "/v1/data-receiver/events", headers, body })).status).toBe(400);
  });

  test("what grows beyond the bound when it is decompressed is code 8", async () => {
    const zeros = gzipSync(Buffer.alloc(50 * 1024 * KiB));
    const packed = { ...headers, "content-encoding": "gzip" };
    expect(zeros.byteLength).toBeLessThan(64 * KiB);
    expect(codeOf(await raw(port, version, { path: events, headers: packed, body: [zeros] }))).toBe(
      "resource_exhausted",
    );
    const grpc = { ...headers, "content-type": "application/grpc", "grpc-encoding": "gzip" };
    expect(codeOf(await raw(port, version, { path: events, headers: grpc, body: [envelope(zeros, 1)] }))).toBe(8);
  });

  test("a stream ends with code 8 beyond its total", async () => {
    const event = create(PutEventRequestSchema, {
      event: { case: "canonical", value: { body: "x".repeat(64 * KiB) } },
    });
    const wide = envelope(toBinary(PutEventRequestSchema, event));
    const grpc = { ...headers, "content-type": "application/grpc" };
    const under = await raw(port, version, { path: stream, headers: grpc, body: Array(15).fill(wide) });
    expect(codeOf(under)).toBe(0);
    const over = await raw(port, version, { path: stream, headers: grpc, body: Array(17).fill(wide) });
    expect(codeOf(over)).toBe(8);
  });

  test("a silent stream ends with code 4", async () => {
    async function* silent() {
      yield envelope(toBinary(PutEventRequestSchema, create(PutEventRequestSchema)));
      await new Promise(() => {});
    }
    const grpc = { ...headers, "content-type": "application/grpc" };
    const answer = await raw(impatient, version, { path: stream, headers: grpc, body: silent() });
    expect(codeOf(answer)).toBe(4);
    expect(answer.ms).toBeGreaterThan(290);
  });

  test("a stream that goes on, slowly, is no silent one", async () => {
    async function* slow() {
      for (let i = 0; i < 8; i += 1) {
        await sleep(500);
        yield envelope(toBinary(PutEventRequestSchema, create(PutEventRequestSchema)));
      }
    }
    const grpc = { ...headers, "content-type": "application/grpc" };
    expect(codeOf(await raw(port, version, { path: stream, headers: grpc, body: slow() }))).toBe(0);
    expect(read).toBe(8);
  });

  test("headers beyond 16 KiB are refused", async () => {
    const large = { ...headers, "x-large": "x".repeat(20 * KiB) };
    const answer = await raw(port, version, { path: events, headers: large }).catch((error: Error) => error);
    if (version === "1.1") {
      expect(answer).toMatchObject({ status: 431, headers: { "content-type": "application/json" } });
      expect(JSON.parse(String("body" in answer && answer.body))).toMatchObject({
        code: 8,
        details: [{ domain: "belfry" }],
      });
    } else {
      expect(answer).not.toMatchObject({ status: 200 });
    }
    expect((await raw(port, version, { method: "GET", path: "/healthz" })).status).toBe(200);
  });
});

test("a connection has at most 250 streams", async () => {
  const { session, close } = openHttp2(port);
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  expect(session.remoteSettings.maxConcurrentStreams).toBe(250);
  close();
});

test("a connection that says nothing, or half a word, is closed and harms no one", async () => {
  const { port: number } = port.address;
  const sockets = ["", "P", "PR", "GET / HT"].map((text) => {
    const socket = connect(number, "127.0.0.1");
    socket.on("error", () => {});
    if (text !== "") socket.write(text);
    return socket;
  });
  expect((await raw(port, "1.1", { method: "GET", path: "/healthz" })).status).toBe(200);
  for (const socket of sockets) socket.destroy();
});
