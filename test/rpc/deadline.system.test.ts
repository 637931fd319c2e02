import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { timeoutOf } from "../../src/wire/call.ts";
import { codeOf, openHttp2, protocols, raw, rawHttp1, transport } from "../support/clients.ts";
import { served, testPort } from "../support/port.ts";

let allowedMs: number | undefined;
let isAborted = false;
let begun: Promise<void>;
let begin: () => void;

beforeEach(() => {
  isAborted = false;
  ({ promise: begun, resolve: begin } = Promise.withResolvers<void>());
});

/** The handlers answer at the end of the file alone. */
const over = Promise.withResolvers<void>();
afterAll(() => over.resolve());

const port = await testPort(
  [
    served(DataReceiverService, {
      async putEvents(_request, context) {
        allowedMs = context.timeoutMs();
        context.signal.addEventListener("abort", () => {
          isAborted = true;
        });
        begin();
        await over.promise; // it does not listen to its signal
        return {};
      },
    }),
  ],
  { settings: { deadlineMsMax: 1000 } },
);
const { text: key } = await port.key();
const path = "/belfry.receiver.v1.DataReceiverService/PutEvents";
const headers = { "content-type": "application/json", "service-api-key": key };
const body = () => [Buffer.from("{}")];

describe.each(protocols)("%s", (protocol) => {
  const client = createClient(DataReceiverService, transport(port, protocol, { "service-api-key": key }));

  test("a call that takes longer than its caller allows ends with code 4, though its handler does not listen", async () => {
    const error = await client.putEvents({}, { timeoutMs: 200 }).catch(ConnectError.from);
    expect(error).toMatchObject({ code: Code.DeadlineExceeded });
  });
});

describe("the server's own bound", () => {
  test.each([
    ["application/json", "connect-timeout-ms", "60000", "deadline_exceeded"],
    ["application/json", "x-none", "", "deadline_exceeded"],
    ["application/grpc", "grpc-timeout", "1M", 4],
    ["application/grpc", "x-none", "", 4],
  ])("cuts longer deadlines, and none: %s %s %s", async (type, name, value, code) => {
    const message = type.includes("grpc") ? [Buffer.from([0, 0, 0, 0, 0])] : body();
    const answer = await raw(port, "2", {
      path,
      headers: { ...headers, "content-type": type, [name]: value },
      body: message,
    });
    expect(codeOf(answer)).toBe(code);
    expect(allowedMs).toBeGreaterThan(0);
    expect(allowedMs).toBeLessThanOrEqual(1000);
  });

  test("holds on /v1", async () => {
    const answer = await raw(port, "1.1", { path: "/v1/data-receiver/events", headers, body: body() });
    expect(answer.status).toBe(504);
    expect(codeOf(answer)).toBe(4);
  });

  test.each([
    ["application/json", "connect-timeout-ms", "soon", "invalid_argument"],
    ["application/grpc", "grpc-timeout", "5", 3],
  ])("a malformed deadline is code 3: %s %s", async (type, name, value, code) => {
    const answer = await raw(port, "2", {
      path,
      headers: { ...headers, "content-type": type, [name]: value },
      body: body(),
    });
    expect(codeOf(answer)).toBe(code);
  });

  test.each([
    ["grpc-timeout", "100m", 100],
    ["grpc-timeout", "900000u", 900],
    ["grpc-timeout", "1S", 1000],
    ["grpc-timeout", "2S", 1000],
    ["grpc-timeout", "99999999H", 1000],
    ["grpc-timeout", undefined, undefined],
    ["connect-timeout-ms", "500", 500],
    ["connect-timeout-ms", "2000", 1000],
    ["connect-timeout-ms", undefined, undefined],
  ])("%s %s allows %s ms", (name, given, expected) => {
    expect(timeoutOf({ [name]: given }, 1000)).toBe(expected);
  });

  test.each([
    ["application/json", "connect-timeout-ms", "900"],
    ["application/json", "x-none", ""],
    ["application/grpc", "grpc-timeout", "900m"],
    ["application/grpc-web", "grpc-timeout", "900m"],
    ["application/grpc-web", "x-none", ""],
  ])("what reading the request has left is handed on: %s %s %s", async (type, name, value) => {
    async function* late() {
      await sleep(400);
      yield type.includes("grpc") ? Buffer.from([0, 0, 0, 0, 0]) : Buffer.from("{}");
    }
    allowedMs = undefined;
    await raw(port, "2", { path, headers: { ...headers, "content-type": type, [name]: value }, body: late() });
    expect(allowedMs).toBeGreaterThan(0);
    expect(allowedMs).toBeLessThanOrEqual((value === "" ? 1000 : 900) - 100);
  });
});

describe("a caller that goes away", () => {
  const aborted = () => expect.poll(() => isAborted).toBe(true);

  test.each([path, "/v1/data-receiver/events"])("over HTTP/1.1 aborts its call's signal: %s", async (at) => {
    const { request } = await import("node:http");
    const call = request(new URL(at, port.url), { method: "POST", headers, agent: false });
    call.on("error", () => {});
    call.end("{}");
    await begun;
    call.destroy();
    await aborted();
  });

  test.each([path, "/v1/data-receiver/events"])("over HTTP/2 aborts its signal, not neighbours': %s", async (at) => {
    const connection = openHttp2(port);
    const stream = connection.session.request({ ":method": "POST", ":path": at, ...headers });
    stream.on("error", () => {}).end("{}");
    await begun;
    stream.close(8);
    await aborted();
    expect((await connection.send({ method: "GET", path: "/healthz" })).status).toBe(200);
    connection.close();
  });

  test("is code 1 in the log", async () => {
    const { request } = await import("node:http");
    const call = request(new URL(path, port.url), {
      method: "POST",
      headers: { ...headers, "x-request-id": "gone-1" },
    });
    call.on("error", () => {});
    call.end("{}");
    await begun;
    call.destroy();
    expect(await port.lineOf("gone-1")).toMatchObject({ code: "CANCELLED" });
    expect((await rawHttp1(port, { method: "GET", path: "/healthz" })).status).toBe(200);
  });
});
