import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { type Client, credentials, Metadata, makeGenericClientConstructor, type ServiceError } from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { DataReceiverService, PutEventsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { newApiKey } from "../../src/auth/key.ts";
import { codeOf, httpVersions, openHttp2, raw, rawHttp1, transport, unfinished } from "../support/clients.ts";
import { served, testPort } from "../support/port.ts";
import { reasonDetail } from "../support/reasons.ts";

const service = served(DataReceiverService, {
  putEvents: ({ events }) => ({ succeeded: events.length }),
  async putEvent(requests) {
    let succeeded = 0;
    for await (const _ of requests) succeeded += 1;
    return { succeeded };
  },
});
const plain = await testPort([service]);
const secure = await testPort([service], { secure: true, database: plain.database });
const ports = { plain, TLS: secure };

const unary = "/belfry.receiver.v1.DataReceiverService/PutEvents";
const stream = "/belfry.receiver.v1.DataReceiverService/PutEvent";
const json = "/v1/data-receiver/events";
const MiB = 1024 * 1024;
const calls = 40;

/** Every way to send a body, with the head of a message that announces 3 MiB. */
const ways = [
  { way: "gRPC", path: unary, type: "application/grpc", code: 16 },
  { way: "gRPC stream", path: stream, type: "application/grpc+proto", code: 16 },
  { way: "gRPC-Web", path: unary, type: "application/grpc-web+proto", code: 16 },
  { way: "gRPC-Web stream", path: stream, type: "application/grpc-web+proto", code: 16 },
  { way: "Connect JSON", path: unary, type: "application/json", code: "unauthenticated" },
  { way: "Connect binary", path: unary, type: "application/proto", code: "unauthenticated" },
  { way: "Connect stream", path: stream, type: "application/connect+proto", code: "unauthenticated" },
  { way: "/v1", path: json, type: "application/json", code: 16 },
  { way: "a content type that nobody knows", path: unary, type: "text/csv", code: 16 },
  { way: "a content type that is malformed", path: unary, type: ";;/", code: 16 },
];

const wrongKeys: Record<string, () => Record<string, string>> = {
  "an unknown key": () => ({ "service-api-key": newApiKey().text }),
  "a mistyped key": () => ({ "service-api-key": "bf_nonsense" }),
  "no key": () => ({}),
};

describe.each(Object.entries(ports))("%s", (_name, port) => {
  describe.each(httpVersions)("HTTP/%s", (version) => {
    test.each(ways)("$way: a wrong key is answered without the rest of its body", async ({ path, type, code }) => {
      const calls = Object.values(wrongKeys).map((wrong) => {
        const first = Buffer.from([0, 0, 0x30, 0, 0]);
        const encoding: Record<string, string> = type.includes("proto") ? { "content-encoding": "gzip" } : {};
        const headers: Record<string, string> = { "content-type": type, ...encoding, ...wrong() };
        return raw(port, version, { path, headers, body: unfinished(first) });
      });
      for (const answer of await Promise.all(calls)) {
        expect(codeOf(answer)).toBe(code);
      }
    });

    test("a key without the permission is refused the same way", async () => {
      const key = await port.key("USER_MANAGEMENT");
      const headers = { "content-type": "application/grpc", "service-api-key": key.text };
      const answer = await raw(port, version, { path: unary, headers, body: unfinished() });
      expect(codeOf(answer)).toBe(Code.PermissionDenied);
    });

    test("an announced content length does not delay the answer", async () => {
      const headers = { "content-type": "application/json", "content-length": String(3 * MiB) };
      const answer = await raw(port, version, { path: unary, headers, body: unfinished() });
      expect(answer.status).toBe(401);
    });

    test("a good key and an unknown content type: 415 in our form", async () => {
      const headers = { "content-type": "text/csv", "service-api-key": (await port.key()).text };
      const answer = await raw(port, version, { path: unary, headers, body: unfinished() });
      expect(answer.status).toBe(415);
      expect(JSON.parse(answer.body.toString())).toMatchObject({
        code: 3,
        details: [reasonDetail("MALFORMED_REQUEST")],
      });
    });
  });
});

const large = toBinary(PutEventsRequestSchema, create(PutEventsRequestSchema, { events: [{ body: "x".repeat(MiB) }] }));

describe("a connection outlives its refused calls", () => {
  test.each(Object.entries(ports))("calls of 1 MiB over gRPC, connect-node's client, %s", async (_name, port) => {
    const client = createClient(DataReceiverService, transport(port, "grpc", { "service-api-key": newApiKey().text }));
    for (let i = 0; i < calls; i += 1) {
      const error = await client.putEvents({ events: [{ body: "x".repeat(MiB) }] }).catch((reason) => reason);
      expect(error, `call ${i}`).toMatchObject({ code: Code.Unauthenticated });
    }
  });

  test.each([1, 10])("calls of 1 MiB over gRPC, %i at a time, @grpc/grpc-js", async (together) => {
    const Constructor = makeGenericClientConstructor(
      {
        putEvents: {
          path: unary,
          requestStream: false,
          responseStream: false,
          requestSerialize: (bytes: Buffer) => bytes,
          requestDeserialize: (bytes: Buffer) => bytes,
          responseSerialize: (bytes: Buffer) => bytes,
          responseDeserialize: (bytes: Buffer) => bytes,
        },
      },
      "DataReceiver",
    );
    const client = new Constructor(new URL(plain.url).host, credentials.createInsecure()) as unknown as Client & {
      putEvents(message: Uint8Array, metadata: Metadata, done: (error: ServiceError | null) => void): void;
    };
    const call = (key: string) =>
      new Promise<ServiceError | null>((resolve) => {
        const metadata = new Metadata();
        metadata.set("service-api-key", key);
        client.putEvents(Buffer.from(large), metadata, resolve);
      });
    for (let i = 0; i < calls; i += together) {
      const errors = await Promise.all(Array.from({ length: together }, () => call(newApiKey().text)));
      for (const error of errors) expect(error?.code).toBe(Code.Unauthenticated);
    }
    expect(await call((await plain.key()).text)).toBeNull();
    client.close();
  });

  test("calls of 1 MiB over one HTTP/2 session that sends all of each body", async () => {
    const connection = openHttp2(plain);
    const headers = { "content-type": "application/grpc", "service-api-key": "wrong" };
    for (let i = 0; i < calls; i += 1) {
      const answer = await connection.send({ path: unary, headers, body: Array(64).fill(Buffer.alloc(16 * 1024)) });
      expect(codeOf(answer), `call ${i}`).toBe(16);
    }
    await sleep(100);
    expect(connection.goaway()).toBeUndefined();
    expect(connection.session.destroyed).toBe(false);
    connection.close();
  });

  test("a body that goes on for ever ends with its stream, not with the connection", async () => {
    const connection = openHttp2(plain);
    const { session } = connection;
    const stream = session.request({ ":method": "POST", ":path": unary, "content-type": "application/grpc" });
    stream.on("error", () => {}).resume();
    let sent = 0;
    const closed = new Promise<number>((resolve) => stream.on("close", () => resolve(stream.rstCode ?? -1)));
    while (!stream.closed && sent < 64 * MiB) {
      sent += 64 * 1024;
      await new Promise((resolve) => stream.write(Buffer.alloc(64 * 1024), resolve));
    }
    expect(await closed).toBe(0);
    expect(sent).toBeLessThan(16 * MiB);
    expect((await connection.send({ method: "GET", path: "/healthz" })).status).toBe(200);
    connection.close();
  });
});

describe("Expect: 100-continue", () => {
  test.each([unary, json])("a wrong key is refused without 100 Continue: %s", async (path) => {
    const { continued, status } = await expecting("wrong", path);
    expect({ continued, status }).toEqual({ continued: false, status: 401 });
  });

  test.each([unary, json])("a good key is invited to send: %s", async (path) => {
    const { continued, status } = await expecting((await plain.key()).text, path);
    expect({ continued, status }).toEqual({ continued: true, status: 200 });
  });

  async function expecting(key: string, path: string) {
    const { request } = await import("node:http");
    const headers = { "content-type": "application/json", "service-api-key": key, expect: "100-continue" };
    return new Promise<{ continued: boolean; status: number | undefined }>((resolve, reject) => {
      let continued = false;
      const call = request(new URL(path, plain.url), { method: "POST", headers });
      call.on("continue", () => {
        continued = true;
        call.end("{}");
      });
      call.on("response", (response) => {
        response.resume();
        response.on("end", () => resolve({ continued, status: response.statusCode }));
      });
      call.on("error", reject);
      call.flushHeaders();
    });
  }
});

test("a refused HTTP/1.1 connection serves the next request when the client sends its body to the end", async () => {
  const { Agent } = await import("node:http");
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { "content-type": "application/json", "service-api-key": "wrong", "content-length": String(MiB) };
  const refused = await rawHttp1(plain, { path: unary, headers, body: [Buffer.alloc(MiB)] }, agent);
  expect(refused.status).toBe(401);
  const next = await rawHttp1(plain, { method: "GET", path: "/healthz" }, agent);
  expect(next.status).toBe(200);
  agent.destroy();
});
