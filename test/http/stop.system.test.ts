import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { httpVersions, openHttp2, raw, transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { served, testPort } from "../support/port.ts";

const database = await testDatabase();
let running = 0;

/** A port whose PutEvents takes `ms` and does not listen to its signal. */
const open = (ms: number) =>
  testPort(
    [
      served(DataReceiverService, {
        async putEvents() {
          running += 1;
          await sleep(ms);
          return { succeeded: 1 };
        },
      }),
    ],
    { database },
  );

const code = (call: Promise<unknown>) =>
  call.then(
    () => 0,
    (error) => ConnectError.from(error).code,
  );

test.each(httpVersions)("running calls finish within the time to drain, HTTP/%s", async (version) => {
  const port = await open(500);
  const headers = { "service-api-key": (await port.key()).text };
  const client = createClient(DataReceiverService, transport(port, "connect", headers, version));
  running = 0;
  const calls = Array.from({ length: 10 }, () => code(client.putEvents({})));
  while (running < 10) await sleep(5);
  await port.close({ drainMs: 600_000 });
  expect(await Promise.all(calls)).toEqual(Array(10).fill(0));
});

test.each(httpVersions)("calls that take longer end with code 14, HTTP/%s", async (version) => {
  const port = await open(60_000);
  const headers = { "service-api-key": (await port.key()).text };
  const client = createClient(DataReceiverService, transport(port, "connect", headers, version));
  running = 0;
  const call = code(client.putEvents({}));
  while (running < 1) await sleep(5);
  await port.close({ drainMs: 200 });
  expect(await call).toBe(Code.Unavailable);
});

test.each(httpVersions)("so do calls of /v1, HTTP/%s", async (version) => {
  const port = await open(60_000);
  const headers = { "content-type": "application/json", "service-api-key": (await port.key()).text };
  running = 0;
  const call = raw(port, version, { path: "/v1/data-receiver/events", headers, body: [Buffer.from("{}")] });
  while (running < 1) await sleep(5);
  await port.close({ drainMs: 200 });
  expect(await call).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
});

test("idle connections do not delay the stop, and new ones are refused", async () => {
  const port = await open(0);
  const { port: number } = port.address;
  const { session, send } = openHttp2(port);
  await send({ method: "GET", path: "/healthz" });
  const silent = connect(number, "127.0.0.1");
  silent.on("error", () => {});
  const { Agent, get } = await import("node:http");
  const agent = new Agent({ keepAlive: true });
  await new Promise<void>((resolve) => {
    get(`${port.url}/healthz`, { agent }, (response) => response.resume().on("end", () => resolve()));
  });
  await port.close({ drainMs: 600_000 });
  expect(session.closed).toBe(true);
  await expect(raw({ url: port.url }, "1.1", { method: "GET", path: "/healthz" })).rejects.toThrow(/ECONNREFUSED/);
  agent.destroy();
});

test("a connection over HTTP/2 that is set up when the port begins to drain is served, told to go, and closed", async () => {
  const port = await open(0);
  const socket = connect(port.address.port, "127.0.0.1");
  while (port.connections() === 0) await sleep(1);
  const closed = port.close({ drainMs: 600_000 });
  const session = connectHttp2(port.url, { createConnection: () => socket });
  session.on("error", () => {});
  let told = false;
  session.on("goaway", () => {
    told = true;
  });
  const stream = session.request({ ":path": "/healthz" }).resume();
  const [headers] = await once(stream, "response");
  expect(headers).toMatchObject({ ":status": 200 });
  await closed;
  expect(told).toBe(true);
});

test("a request that came while the process had no time is read before silent connections end", async () => {
  const port = await open(0);
  const socket = connect(port.address.port, "127.0.0.1");
  while (port.connections() === 0) await sleep(1);
  const closed = port.close({ drainMs: 600_000 });
  for (let turns = 0; turns < 5; turns++) await turn();
  socket.write("GET /healthz HTTP/1.1\r\nhost: belfry\r\n\r\n");
  const busyUntil = performance.now() + 1000;
  while (performance.now() < busyUntil);
  const [answer] = await once(socket, "data");
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
  await closed;
});

test("while it drains it is not ready", async () => {
  const port = await open(1000);
  const headers = { "service-api-key": (await port.key()).text };
  const client = createClient(DataReceiverService, transport(port, "connect", headers, "1.1"));
  running = 0;
  const call = code(client.putEvents({}));
  while (running < 1) await sleep(5);
  const socket = connect(port.address.port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  let answer = "";
  socket.on("data", (piece) => {
    answer += piece;
  });
  socket.write("GET /readyz HTTP/1.1\r\nHost: x\r\n");
  await sleep(50);
  const closed = port.close({ drainMs: 600_000 });
  await sleep(50);
  socket.write("\r\n");
  await closed;
  expect(answer).toMatch(/^HTTP\/1.1 503 /);
  expect(answer).toContain("stopping");
  expect(answer.toLowerCase()).toContain("connection: close");
  expect(await call).toBe(0);
});
