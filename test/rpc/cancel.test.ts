import http from "node:http";
import { constants } from "node:http2";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { httpVersions, openHttp2, protocols, raw, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer({});
const { sql } = server.database;
const { headers } = await testTenant(sql);
const path = "/v1/events:search";
const body = JSON.stringify({ query: {} });
const json = { ...headers, "content-type": "application/json" };
let release = () => {};

// Every search waits for this lock in PostgreSQL, for as long as no one stops it.
beforeAll(async () => {
  const locked = Promise.withResolvers<void>();
  void sql.begin(async (tx) => {
    await tx`lock table occurrences in access exclusive mode`;
    await new Promise<void>((resolve) => {
      release = resolve;
      locked.resolve();
    });
  });
  await locked.promise;
});
afterAll(() => release());

/** Search statements at work in PostgreSQL. */
async function searching(): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::int4 as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query ~ 'with (matching|walked) as'`;
  return row.count;
}

const became = (count: number) => expect.poll(searching, { timeout: 10_000, interval: 20 }).toBe(count);

const ways = protocols.flatMap((protocol) =>
  httpVersions.filter((version) => protocol !== "grpc" || version === "2").map((version) => ({ protocol, version })),
);

describe("the statement of a search stops in PostgreSQL", () => {
  test.each(ways)("when its caller cancels: $protocol over HTTP/$version", async ({ protocol, version }) => {
    const client = createClient(EventQueryService, transport(server, protocol, headers, version));
    const cancelled = new AbortController();
    const answer = client.searchEvents({ query: {} }, { signal: cancelled.signal }).catch((error) => error);
    await became(1);
    cancelled.abort();
    await became(0);
    expect(ConnectError.from(await answer).code).toBe(Code.Canceled);
  });

  test.each(ways)("when its deadline passes: $protocol over HTTP/$version", async ({ protocol, version }) => {
    const client = createClient(EventQueryService, transport(server, protocol, headers, version));
    const answer = client.searchEvents({ query: {} }, { timeoutMs: 700 }).catch((error) => error);
    await became(1);
    expect(ConnectError.from(await answer).code).toBe(Code.DeadlineExceeded);
    await became(0);
  });

  test("when its connection breaks: /v1 over HTTP/1.1", async () => {
    const request = http.request(server.url + path, { method: "POST", headers: json });
    request.on("error", () => {}).end(body);
    await became(1);
    request.destroy();
    await became(0);
  });

  test.each(["its stream is reset", "its connection breaks"])("when %s: /v1 over HTTP/2", async (what) => {
    const { session, close } = openHttp2(server);
    const stream = session.request({ ":method": "POST", ":path": path, ...json });
    stream.on("error", () => {}).end(body);
    await became(1);
    if (what === "its stream is reset") stream.close(constants.NGHTTP2_CANCEL);
    else close();
    await became(0);
    close();
  });

  test.each(httpVersions)("when its deadline passes: /v1 over HTTP/%s", async (version) => {
    const wait = { ...json, "connect-timeout-ms": "700" };
    const answer = raw(server, version, { path, headers: wait, body: [Buffer.from(body)] });
    await became(1);
    expect((await answer).status).toBe(504);
    await became(0);
  });
});
