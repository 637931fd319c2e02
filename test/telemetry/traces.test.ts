import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { raw, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

interface Span {
  traceId: string;
  parentSpanId?: string;
  traceState?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: { stringValue: string } }[];
  status: { code: number };
}

/** A collector of OpenTelemetry: takes OTLP over HTTP, in JSON. */
const requests: { url: string | undefined; body: string }[] = [];
const collector = createServer(async (request, response) => {
  const body = (await request.toArray()).join("");
  requests.push({ url: request.url, body });
  response.writeHead(200, { "content-type": "application/json" }).end("{}");
});
await once(collector.listen(0, "127.0.0.1"), "listening");
afterAll(() => collector.close());
const { port } = collector.address() as AddressInfo;

const server = await testServer({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` });
const { headers } = await testTenant(server.database.sql);

const attributesOf = ({ attributes }: Span) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]));

test("each call becomes a span, within its caller's trace; what waits is sent when the server stops", async () => {
  const startMs = Date.now();
  const rpc = "belfry.events.v1.EventQueryService/SearchEvents";
  const traced = (traceparent: string, more: Record<string, string> = {}) => ({ ...headers, traceparent, ...more });
  const search = async (own: Record<string, string>, request: object) => {
    const client = createClient(EventQueryService, transport(server.target, "grpc", own));
    await client.searchEvents(request).catch(ConnectError.from);
  };
  const [one, two, three] = ["1", "2", "3"].map((digit) => digit.repeat(32));
  await search(traced(`00-${one}-00f067aa0ba902b7-01`, { tracestate: "vendor=a" }), { query: {} });
  await search(traced(`00-${two}-00f067aa0ba902b7-00`), { query: {} }); // its caller does not sample it
  await search(traced("00-nonsense-01"), {});
  const json = traced(`00-${three}-00f067aa0ba902b7-01`, {
    "content-type": "application/json",
    "x-request-id": "mine",
  });
  await raw(server.target, "1.1", { path: "/v1/events:search", headers: json, body: [Buffer.from('{"query":{}}')] });
  await raw(server.target, "1.1", { method: "GET", path: "/healthz" });
  await server.stop();

  expect(new Set(requests.map(({ url }) => url))).toEqual(new Set(["/v1/traces"]));
  const sent = requests.flatMap(({ body }) => JSON.parse(body).resourceSpans);
  const resource = attributesOf(sent[0].resource);
  expect(resource).toMatchObject({ "service.name": "belfry", "service.version": expect.stringMatching(/^\d/) });
  const spans: Span[] = sent.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope: { spans: Span[] }) => scope.spans));
  expect(spans.map(({ name, kind }) => [name, kind])).toEqual([1, 2, 3].map(() => [rpc, 2])); // 2: server
  const [first, broken, last] = spans as [Span, Span, Span];
  expect(first).toMatchObject({ traceId: one, parentSpanId: "00f067aa0ba902b7", traceState: "vendor=a" });
  expect(attributesOf(first)).toMatchObject({ "rpc.system.name": "grpc", "rpc.method": rpc, "rpc.status_code": "OK" });
  expect(broken.parentSpanId).toBeUndefined();
  expect(attributesOf(broken)).toMatchObject({
    "rpc.status_code": "INVALID_ARGUMENT",
    "error.type": "INVALID_ARGUMENT",
  });
  expect(broken.status.code).toBe(0); // the caller's mistake
  expect(last).toMatchObject({ traceId: three });
  expect(attributesOf(last)).toMatchObject({ "rpc.system.name": "http_json", "belfry.request_id": "mine" });
  for (const { startTimeUnixNano, endTimeUnixNano } of spans) {
    const [begun, ended] = [Number(startTimeUnixNano) / 1e6, Number(endTimeUnixNano) / 1e6];
    expect(begun).toBeGreaterThan(startMs - 1000);
    expect(ended).toBeGreaterThanOrEqual(begun);
    expect(ended).toBeLessThan(Date.now() + 1000);
  }
  expect(JSON.stringify(sent)).not.toContain(headers["service-api-key"]);
});
