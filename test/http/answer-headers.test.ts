import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { httpVersions, raw } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const { headers } = await testTenant(server.database.sql);
const json = { ...headers, "content-type": "application/json" };
const rpc = "/belfry.events.v1.EventQueryService/SearchEvents";
const body = [Buffer.from('{"query":{}}')];

test.each(httpVersions)("every answer over HTTP/%s is of its type and kept by nobody", async (version) => {
  const asked = [
    ["an answer of /v1", { path: "/v1/events:search", headers: json, body }],
    ["an error of /v1", { path: "/v1/events:search", headers: json, body: [Buffer.from("{")] }],
    ["no key", { path: "/v1/events:search", body }],
    ["an unknown path", { method: "GET", path: "/v1/nothing" }],
    ["an unknown path outside of /v1", { method: "GET", path: "/nothing" }],
    ["OPTIONS", { method: "OPTIONS", path: "/v1/events:search" }],
    ["Connect", { path: rpc, headers: json, body }],
    ["gRPC", { path: rpc, headers: { ...headers, "content-type": "application/grpc" }, body: [Buffer.alloc(5)] }],
    [
      "gRPC-Web",
      { path: rpc, headers: { ...headers, "content-type": "application/grpc-web" }, body: [Buffer.alloc(5)] },
    ],
    [
      "a stream",
      {
        path: "/belfry.receiver.v1.DataReceiverService/StreamEvents",
        headers: { ...headers, "content-type": "application/grpc" },
        body: [],
      },
    ],
    ["Alertmanager", { method: "GET", path: "/api/v2/alerts", headers }],
    ["health", { method: "GET", path: "/healthz" }],
    ["a redirection", { method: "GET", path: "/console" }],
  ] as const;
  for (const [what, request] of asked) {
    if (version === "1.1" && what === "a stream") continue;
    const answer = await raw(server.target, version, request as Parameters<typeof raw>[2]);
    expect(answer.headers, what).toMatchObject({ "x-content-type-options": "nosniff", "cache-control": "no-store" });
  }
});

test("pages are kept by those who ask each time whether they have changed", async () => {
  const page = await raw(server.target, "2", { method: "GET", path: "/docs", headers: { accept: "text/html" } });
  expect(page.headers).toMatchObject({ "x-content-type-options": "nosniff", "cache-control": "no-cache" });
});

/** Writes to the port, and returns the answer. */
async function written(lines: string[]): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const socket: Socket = connect(Number(port), hostname);
  let answer = "";
  socket.on("data", (text) => (answer += text));
  socket.end(lines.join("\r\n"));
  await once(socket, "close");
  return answer;
}

test("what is no HTTP is answered so as well", async () => {
  expect(await written(["nonsense", "", ""])).toMatch(/x-content-type-options: nosniff\r\ncache-control: no-store\r\n/);
});

test("two headers Authorization are refused, whichever of them holds a key", async () => {
  const key = headers["service-api-key"];
  const refused = '"message":"the request has more than one API key; send one"';
  for (const pair of [
    [key, key],
    [key, "other"],
    ["other", key],
  ]) {
    const authorization = pair.map((each) => `Authorization: Bearer ${each}`);
    const head = ["GET /v1/notification/rules HTTP/1.1", "Host: x", "Connection: close", ...authorization, "", ""];
    const answer = await written(head);
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    expect(answer).toContain(refused);
  }
});
