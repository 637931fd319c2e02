import { gzipSync } from "node:zlib";
import { create, fromBinary, type MessageInitShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { credentials, Metadata } from "@grpc/grpc-js";
import { SeverityNumber } from "@opentelemetry/api-logs";
import { OTLPLogExporter as GrpcLogs } from "@opentelemetry/exporter-logs-otlp-grpc";
import { OTLPLogExporter as JsonLogs } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPLogExporter as ProtobufLogs } from "@opentelemetry/exporter-logs-otlp-proto";
import { OTLPMetricExporter as GrpcMetrics } from "@opentelemetry/exporter-metrics-otlp-grpc";
import {
  AggregationTemporalityPreference,
  OTLPMetricExporter as JsonMetrics,
} from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter as ProtobufMetrics } from "@opentelemetry/exporter-metrics-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";
import { AggregationType, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { describe, expect, test } from "vitest";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import {
  ExportMetricsServiceRequestSchema,
  ExportMetricsServiceResponseSchema,
  MetricsService,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { tool } from "./calls.ts";

const server = await testServer({ BELFRY_INGEST_WAIT: "1m" });
const { sql } = server.database;
const resource = resourceFromAttributes({ "host.name": "web-1", "os.type": "linux", priority: 9 });

async function world() {
  const tenant = await testTenant(sql);
  const key = String(tenant.headers["service-api-key"]);
  const stored = async () =>
    (
      await sql`select s.metric, s.labels, s.units, s.description from series s where tenant_id = ${tenant.id}
        order by s.metric, s.labels::text`
    ).map(
      ({ metric, labels }) => `${metric}${JSON.stringify(Object.fromEntries(Object.entries(labels ?? {}).sort()))}`,
    );
  return { tenant, key, call: tool(server, tenant.headers), json: v1(server.url, tenant.headers), stored };
}

const headers = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
const grpc = (key: string) => {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  return { url: server.url, credentials: credentials.createInsecure(), metadata };
};
const { CUMULATIVE, DELTA } = AggregationTemporalityPreference;
type Preference = { temporalityPreference: AggregationTemporalityPreference };
const metricExporters = {
  gRPC: (key: string, more: Preference) => new GrpcMetrics({ ...grpc(key), ...more }),
  "HTTP with Protobuf": (key: string, more: Preference) =>
    new ProtobufMetrics({ url: `${server.url}/v1/metrics`, ...headers(key), ...more }),
  "HTTP with JSON": (key: string, more: Preference) =>
    new JsonMetrics({ url: `${server.url}/v1/metrics`, ...headers(key), ...more }),
};
const logExporters = {
  gRPC: (key: string) => new GrpcLogs(grpc(key)),
  "HTTP with Protobuf": (key: string) => new ProtobufLogs({ url: `${server.url}/v1/logs`, ...headers(key) }),
  "HTTP with JSON": (key: string) => new JsonLogs({ url: `${server.url}/v1/logs`, ...headers(key) }),
};

const scope = '"otel.scope.name":"shop"';
const instruments = [
  ...["exponential.count", "exponential.max", "exponential.min", "exponential.sum"].map((each) => `${each}{${scope}}`),
  ...["+Inf", "0.5", "1"].map((le) => `latency.bucket{"le":"${le}",${scope}}`),
  ...["latency.count", "latency.max", "latency.min", "latency.sum", "observed"].map((each) => `${each}{${scope}}`),
  `orders{"a.b":"1","a_b":"2","__name__":"n",${scope}}`,
  ...[`queue{${scope}}`, `temperature{${scope}}`],
];

describe.each(Object.entries(metricExporters))("OpenTelemetry's SDK over %s", (_, exporterOf) => {
  test.each([CUMULATIVE, DELTA])(
    "each instrument, temporality %s; the resource becomes a model once",
    async (preference) => {
      const { key, stored, tenant } = await world();
      const exporter = exporterOf(key, { temporalityPreference: preference });
      const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
      const views = [
        { instrumentName: "exponential", aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM as const } },
      ];
      const provider = new MeterProvider({ resource, readers: [reader], views });
      const meter = provider.getMeter("shop");
      meter.createCounter("orders").add(3, { "a.b": "1", a_b: "2", __name__: "n" });
      meter.createUpDownCounter("queue").add(-2);
      meter.createGauge("temperature").record(20.5);
      meter.createHistogram("latency", { advice: { explicitBucketBoundaries: [0.5, 1] } }).record(0.7);
      meter.createHistogram("exponential").record(4);
      meter.createObservableGauge("observed").addCallback((result) => result.observe(7));
      await provider.forceFlush();
      await provider.shutdown();
      const sorted = (all: string[]) =>
        all
          .map((each) =>
            each.replace(/\{.*/, (labels) =>
              JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(labels)).sort())),
            ),
          )
          .sort();
      expect(sorted(await stored())).toEqual(sorted(instruments));
      const [entity] = await sql`select dimensions, metadata from entities where tenant_id = ${tenant.id}`;
      expect(entity).toEqual({
        dimensions: { "host.name": "web-1" },
        metadata: { "os.type": "linux", "attribute.priority": 9 },
      });
    },
  );
});

test.each(Object.entries(logExporters))(
  "log records with an event name become events, over %s",
  async (_, exporterOf) => {
    const { key, json } = await world();
    const provider = new LoggerProvider({
      resource,
      processors: [new BatchLogRecordProcessor({ exporter: exporterOf(key) })],
    });
    const logger = provider.getLogger("shop");
    logger.emit({
      eventName: "disk.full",
      severityNumber: SeverityNumber.ERROR,
      body: "97 %",
      attributes: { disk: "sda" },
    });
    logger.emit({ body: "a line of a log" });
    await provider.forceFlush();
    await provider.shutdown();
    const { body } = await json("POST", "/v1/events:search", { query: { pageInput: { limit: 100 } } });
    expect(body.results).toMatchObject([
      {
        name: "disk.full",
        occurrences: [
          {
            ...{ severity: "SEVERITY_ERROR", body: "97 %", dimensions: { "host.name": "web-1" } },
            metadataFields: { disk: "sda" },
          },
        ],
      },
    ]);
  },
);

/** A service of OpenTelemetry that there is no schema of here; its messages are read by none. */
const parent = { ...MetricsService, typeName: "opentelemetry.proto.collector.trace.v1.TraceService" };
const TraceService = { ...parent, methods: [{ ...MetricsService.method.export, parent }] } as typeof MetricsService;

type Point = { value: number; timeMs?: number; flags?: number };
const request = (points: Point[], name = "m"): MessageInitShape<typeof ExportMetricsServiceRequestSchema> => ({
  resourceMetrics: [
    {
      scopeMetrics: [
        {
          metrics: [
            {
              name,
              data: {
                case: "gauge",
                value: {
                  dataPoints: points.map(({ value, timeMs = Date.now(), flags = 0 }) => ({
                    ...{ flags, timeUnixNano: BigInt(timeMs) * 1_000_000n },
                    value: { case: "asDouble" as const, value },
                  })),
                },
              },
            },
          ],
        },
      ],
    },
  ],
});
const outcomes: [string, MessageInitShape<typeof ExportMetricsServiceRequestSchema>, object | undefined][] = [
  ["all taken", request([{ value: 1 }]), undefined],
  ["empty", {}, undefined],
  ["no value recorded", request([{ value: 1, flags: 1 }]), undefined],
  ["no time", request([{ value: 1, timeMs: 0 }]), undefined],
  [
    "some refused",
    request([{ value: 1 }, { value: Number.POSITIVE_INFINITY }, { value: 1, timeMs: 1_600_000_000_000 }]),
    {
      rejectedDataPoints: 2n,
      errorMessage: expect.stringContaining(
        "m: the value must be finite; m: timestamp: must not be more than 24 h old",
      ),
    },
  ],
  ["a name that is none", request([{ value: 1 }], ""), { rejectedDataPoints: 1n }],
];

describe.each(outcomes)("what became of a request: %s", (_, init, partialSuccess) => {
  const message = create(ExportMetricsServiceRequestSchema, init);
  const form = "application/x-protobuf";
  test("over gRPC", async () => {
    const { tenant } = await world();
    const client = createClient(MetricsService, createGrpcTransport({ baseUrl: server.url }));
    const answer = await client.export(message, { headers: tenant.headers });
    if (partialSuccess === undefined) expect(answer.partialSuccess).toBeUndefined();
    else expect(answer.partialSuccess).toMatchObject(partialSuccess);
  });

  test.each(["none", "gzip"])("over HTTP, compression %s", async (compression) => {
    const { call } = await world();
    const packed = (bytes: Uint8Array) => (compression === "gzip" ? gzipSync(bytes) : Buffer.from(bytes));
    const encoded: Record<string, string> = compression === "gzip" ? { "content-encoding": "gzip" } : {};
    const binary = packed(toBinary(ExportMetricsServiceRequestSchema, message));
    const answer = await call("POST", "/v1/metrics", binary, { "content-type": form, ...encoded });
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, form]);
    const said = fromBinary(ExportMetricsServiceResponseSchema, answer.bytes);
    if (partialSuccess === undefined) expect(answer.body).toBe("");
    else expect(said.partialSuccess).toMatchObject(partialSuccess);
    const text = packed(Buffer.from(toJsonString(ExportMetricsServiceRequestSchema, message, { enumAsInteger: true })));
    const inJson = await call("POST", "/v1/metrics", text, encoded);
    expect([inJson.status, inJson.headers["content-type"]]).toEqual([200, "application/json"]);
    expect(inJson.body.partialSuccess === undefined).toBe(partialSuccess === undefined);
  });
});

describe("what is refused is a Status in the request's encoding", () => {
  const protobuf = { "content-type": "application/x-protobuf" };
  test.each([
    ["broken Protobuf", "/v1/metrics", Buffer.from([0x0a, 5, 1]), protobuf, 400, 3],
    ["broken JSON", "/v1/metrics", Buffer.from("{"), {}, 400, 3],
    ["traces in Protobuf", "/v1/traces", Buffer.alloc(0), protobuf, 404, 5],
    ["traces in JSON", "/v1/traces", Buffer.from("{}"), {}, 404, 5],
    ["another type", "/v1/logs", Buffer.from("x"), { "content-type": "text/plain" }, 415, 3],
    ["16 MiB of empty messages", "/v1/metrics", Buffer.alloc(16 * 2 ** 20, Buffer.from([0x0a, 0])), protobuf, 413, 8],
    [
      "too large a body",
      "/v1/logs",
      gzipSync(Buffer.alloc(17 * 2 ** 20)),
      { ...protobuf, "content-encoding": "gzip" },
      413,
      8,
    ],
  ] as [string, string, Buffer, Record<string, string>, number, number][])(
    "%s",
    async (_, path, body, more, status, code) => {
      const { call } = await world();
      const answer = await call("POST", path, body, more);
      expect(answer.status).toBe(status);
      const inJson = more["content-type"] === undefined;
      const said = inJson ? answer.body : fromBinary(StatusSchema, answer.bytes);
      expect(said).toMatchObject({ code, message: expect.stringMatching(/\w/) });
      expect(answer.headers["content-type"]).toBe(inJson ? "application/json" : "application/x-protobuf");
    },
  );
});

test("traces over gRPC are a method that is not there, with a sentence; with a wrong key they are refused for that", async () => {
  const { tenant } = await world();
  const client = createClient(TraceService, createGrpcTransport({ baseUrl: server.url }));
  const refused = (headers: Record<string, string>) =>
    client.export({}, { headers }).catch((error: unknown) => ConnectError.from(error));
  expect(await refused(tenant.headers)).toMatchObject({
    code: Code.Unimplemented,
    rawMessage: expect.stringContaining("traces are not stored here: send metrics to /v1/metrics"),
  });
  expect(await refused({})).toMatchObject({ code: Code.Unauthenticated });
});

test("JSON of later versions: unknown members, ids in hex, numbers as text", async () => {
  const { call, json } = await world();
  const record = {
    eventName: "e",
    traceId: "5b8efff798038103d269b633813fc60c",
    timeUnixNano: `${Date.now()}000000`,
    later: { x: [1] },
  };
  const body = { resourceLogs: [{ scopeLogs: [{ logRecords: [record] }], other: 1 }] };
  expect(await call("POST", "/v1/logs", body)).toMatchObject({ status: 200, body: {} });
  const { body: found } = await json("POST", "/v1/events:search", { query: { pageInput: { limit: 100 } } });
  expect(found.results).toMatchObject([{ name: "e", occurrences: [{ dimensions: { source: "opentelemetry" } }] }]);
});
