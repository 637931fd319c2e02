import { gzipSync } from "node:zlib";
import {
  create,
  type DescService,
  fromBinary,
  fromJson,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { compressionGzip, createGrpcTransport } from "@connectrpc/connect-node";
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
  ExportLogsServiceRequestSchema,
  ExportLogsServiceResponseSchema,
  LogsService,
} from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import {
  ExportMetricsServiceRequestSchema,
  ExportMetricsServiceResponseSchema,
  MetricsService,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import {
  ExportTraceServiceRequestSchema,
  ExportTraceServiceResponseSchema,
  TraceService,
} from "#gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.ts";
import { codeOf, raw } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { tool } from "./calls.ts";

const server = await testServer();
const { sql } = server.database;
const resource = resourceFromAttributes({ "host.name": "web-1", "os.type": "linux", priority: 9 });

interface Series {
  name: string;
  labels: Record<string, string>;
  values: number[];
  type?: string;
  temporality?: string;
}

async function world() {
  const tenant = await testTenant(sql);
  const key = String(tenant.headers["service-api-key"]);
  const json = v1(server.url, tenant.headers);
  async function search() {
    const { body } = await json("POST", "/v1/metrics:search", {
      entityClause: { filter: { field: "host.name", operation: "OP_EQUALS", value: "web-1" } },
      timeRange: {
        start: new Date(Date.now() - 3_600_000).toISOString(),
        end: new Date(Date.now() + 1000).toISOString(),
      },
      downsample: { aggregator: "NONE", period: "1h" },
    });
    return body.metrics as Series[];
  }
  /** The last value of each series of the host, by its name and labels. */
  const stored = async () =>
    Object.fromEntries(
      (await search()).map(({ name, labels: { "otel.scope.name": scope, ...labels }, values }) => {
        expect(scope).toBe("shop");
        const shown = Object.keys(labels).length === 0 ? "" : JSON.stringify(labels);
        return [`${name}${shown}`, values.at(-1)];
      }),
    );
  /** Type and temporality of each metric of the host. */
  const instruments = async () =>
    Object.fromEntries(
      (await search()).map(({ name, type, temporality }) => [name, [type, temporality].filter(Boolean).join(" ")]),
    );
  return { tenant, key, call: tool(server, tenant.headers), json, stored, instruments };
}

/** A request of these metrics, as each form of it is written. */
const ofMetrics = <T>(...metrics: T[]) => ({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] });
const web1 = { attributes: [{ key: "host.name", value: { stringValue: "web-1" } }] };
/** The same in JSON, of the host that is searched for. */
const ofWeb1 = (...metrics: object[]) => ({
  resourceMetrics: [{ resource: web1, scopeMetrics: [{ scope: { name: "shop" }, metrics }] }],
});
const ofLogs = (...logRecords: object[]) => ({ resourceLogs: [{ scopeLogs: [{ logRecords }] }] });
const grpcClient = <S extends DescService>(service: S, { url } = server) =>
  createClient(service, createGrpcTransport({ baseUrl: url }));

const headers = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
/** The Collector's default. */
const compression = "gzip" as never;
const grpc = (key: string) => {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${key}`);
  return { url: server.url, credentials: credentials.createInsecure(), metadata, compression };
};
const { CUMULATIVE, DELTA, LOWMEMORY } = AggregationTemporalityPreference;
type Preference = { temporalityPreference: AggregationTemporalityPreference };
const metricExporters = {
  gRPC: (key: string, more: Preference) => new GrpcMetrics({ ...grpc(key), ...more }),
  "HTTP with Protobuf": (key: string, more: Preference) =>
    new ProtobufMetrics({ url: `${server.url}/v1/metrics`, compression, ...headers(key), ...more }),
  "HTTP with JSON": (key: string, more: Preference) =>
    new JsonMetrics({ url: `${server.url}/v1/metrics`, ...headers(key), ...more }),
};
const logExporters = {
  gRPC: (key: string) => new GrpcLogs(grpc(key)),
  "HTTP with Protobuf": (key: string) => new ProtobufLogs({ url: `${server.url}/v1/logs`, ...headers(key) }),
  "HTTP with JSON": (key: string) => new JsonLogs({ url: `${server.url}/v1/logs`, ...headers(key) }),
};

/** What the last export leaves of a first one and a second, where they are summed up, and where only the second counts. */
const distribution = (name: string, [count, sum, min, max]: number[]) => ({
  [`${name}.count`]: count,
  [`${name}.sum`]: sum,
  [`${name}.min`]: min,
  [`${name}.max`]: max,
});
const buckets = (counts: number[]) =>
  Object.fromEntries(["0.5", "1", "+Inf"].map((le, i) => [`latency.bucket${JSON.stringify({ le })}`, counts[i]]));
const orders = 'orders{"a.b":"1","a_b":"2","__name__":"n","ä":"3"}';
const summedUp = {
  [orders]: 5,
  ...distribution("exponential", [2, 6, 2, 4]),
  ...distribution("latency", [2, 1, 0.25, 0.75]),
  ...buckets([1, 2, 2]),
};
const second = {
  [orders]: 2,
  ...distribution("exponential", [1, 2, 2, 2]),
  ...distribution("latency", [1, 0.25, 0.25, 0.25]),
  ...buckets([1, 1, 1]),
};
const always = { queue: -1, temperature: 20.5, observed: 7, "observed queue": 4 };
/** What those that senders count since the last export are, and what an observed counter is. */
const kinds = (counted: string, observed: string) => ({
  queue: "UP_DOWN_COUNTER CUMULATIVE",
  "observed queue": "UP_DOWN_COUNTER CUMULATIVE",
  temperature: "GAUGE",
  observed: "GAUGE",
  orders: `COUNTER ${counted}`,
  "observed orders": `COUNTER ${observed}`,
  ...Object.fromEntries(
    ["latency.bucket", ...["latency", "exponential"].flatMap((name) => Object.keys(distribution(name, [])))].map(
      (name) => [name, `HISTOGRAM ${counted}`],
    ),
  ),
});
const left = [
  ["cumulative", CUMULATIVE, { ...always, ...summedUp, "observed orders": 10 }, kinds("CUMULATIVE", "CUMULATIVE")],
  ["delta", DELTA, { ...always, ...second, "observed orders": 3 }, kinds("DELTA", "DELTA")],
  ["that of little memory", LOWMEMORY, { ...always, ...second, "observed orders": 10 }, kinds("DELTA", "CUMULATIVE")],
] as const;

/** Keys of JSON in one order. */
const sorted = (all: object) =>
  Object.fromEntries(
    Object.entries(all)
      .map(([key, value]) => [
        key.replace(/\{.*/, (labels) => JSON.stringify(Object.entries(JSON.parse(labels)).sort())),
        value,
      ])
      .sort(),
  );

describe.each(Object.entries(metricExporters))("OpenTelemetry's SDK over %s", (_, exporterOf) => {
  test.each(left)("each instrument, %s; the resource becomes a model", async (_name, preference, last, named) => {
    const { key, stored, instruments, tenant } = await world();
    const exporter = exporterOf(key, { temporalityPreference: preference });
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const views = [
      { instrumentName: "exponential", aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM as const } },
    ];
    const provider = new MeterProvider({ resource, readers: [reader], views });
    const meter = provider.getMeter("shop");
    const counter = meter.createCounter("orders");
    const queue = meter.createUpDownCounter("queue");
    const latency = meter.createHistogram("latency", { advice: { explicitBucketBoundaries: [0.5, 1] } });
    const exponential = meter.createHistogram("exponential");
    let seen = 7;
    meter.createGauge("temperature").record(20.5);
    meter.createObservableGauge("observed").addCallback((result) => result.observe(7));
    meter.createObservableUpDownCounter("observed queue").addCallback((result) => result.observe(4));
    meter.createObservableCounter("observed orders").addCallback((result) => result.observe(seen));
    const labels = { "a.b": "1", a_b: "2", __name__: "n", ä: "3" };
    for (const [taken, queued, took, size] of [
      [3, -2, 0.75, 4],
      [2, 1, 0.25, 2],
    ] as const) {
      counter.add(taken, labels);
      queue.add(queued);
      latency.record(took);
      exponential.record(size);
      await provider.forceFlush();
      seen = 10;
    }
    const found = await stored();
    await provider.shutdown();
    expect(sorted(found)).toEqual(sorted(last));
    expect(await instruments()).toEqual(named);
    const [entity] = await sql`select dimensions, metadata from entities where tenant_id = ${tenant.id}`;
    expect(entity).toEqual({
      dimensions: { "host.name": "web-1" },
      metadata: { "os.type": "linux", "attribute.priority": 9 },
    });
  });
});

test.each(Object.entries(logExporters))("log records with an event name are events, over %s", async (_, exporterOf) => {
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
          severity: "SEVERITY_ERROR",
          body: "97 %",
          dimensions: { "host.name": "web-1" },
          metadataFields: { disk: "sda" },
        },
      ],
    },
  ]);
});

type Point = { value: number; timeMs?: number; flags?: number };
const request = (points: Point[], name = "m"): MessageInitShape<typeof ExportMetricsServiceRequestSchema> => {
  const dataPoints = points.map(({ value, timeMs = Date.now(), flags = 0 }) => ({
    flags,
    timeUnixNano: BigInt(timeMs) * 1_000_000n,
    value: { case: "asDouble" as const, value },
  }));
  return ofMetrics({ name, data: { case: "gauge", value: { dataPoints } } });
};
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
  test.each(["none", "gzip"])("over gRPC, compression %s", async (compression) => {
    const { tenant } = await world();
    const more = compression === "gzip" ? { sendCompression: compressionGzip, compressMinBytes: 0 } : {};
    const transport = createGrpcTransport({ baseUrl: server.url, ...more });
    const client = createClient(MetricsService, transport);
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

test("type and temporality of a series are those that were sent last, and are written when they change", async () => {
  const { tenant, call, instruments } = await world();
  const send = async (data: object) => {
    const answer = await call("POST", "/v1/metrics", ofWeb1({ name: "orders", ...data }));
    expect([answer.status, answer.body]).toEqual([200, {}]);
    const [row] = await sql`select xmin::text as write from series where tenant_id = ${tenant.id}`;
    return [row?.write, (await instruments()).orders];
  };
  const dataPoints = [{ asDouble: 1 }];
  const sum = { dataPoints, aggregationTemporality: 2, isMonotonic: true };
  const [made, counter] = await send({ sum });
  expect(counter).toBe("COUNTER CUMULATIVE");
  expect(await send({ sum })).toEqual([made, counter]);
  const [changed, delta] = await send({ sum: { ...sum, aggregationTemporality: 1 } });
  expect([changed === made, delta]).toEqual([false, "COUNTER DELTA"]);
  expect((await send({ sum: { ...sum, isMonotonic: false } }))[1]).toBe("UP_DOWN_COUNTER CUMULATIVE");
  // A temporality that there is not.
  expect((await send({ sum: { ...sum, aggregationTemporality: 9 } }))[1]).toBe("COUNTER");
  expect((await send({ gauge: { dataPoints } }))[1]).toBe("GAUGE");
  expect((await send({ sum }))[1]).toBe("COUNTER CUMULATIVE");
});

test("a summary is one", async () => {
  const { call, instruments } = await world();
  const summary = { dataPoints: [{ count: "3", sum: 2, quantileValues: [{ quantile: 0.9, value: 0.7 }] }] };
  await call("POST", "/v1/metrics", ofWeb1({ name: "latency", summary }));
  expect(await instruments()).toEqual({ latency: "SUMMARY", "latency.count": "SUMMARY", "latency.sum": "SUMMARY" });
});

describe("bounds of a request", async () => {
  const small = await testServer({ BELFRY_RECEIVER_ITEMS_MAX: "10" });
  const { headers } = await testTenant(small.database.sql);
  const client = grpcClient(MetricsService, small);
  const counts = async () => (await small.database.sql`select count(*)::int as series from series`)[0]?.series;
  const histogram = (buckets: number, bounds = buckets - 1) => ({
    case: "histogram" as const,
    value: {
      dataPoints: [
        {
          timeUnixNano: BigInt(Date.now()) * 1_000_000n,
          bucketCounts: Array<bigint>(buckets).fill(1n),
          explicitBounds: Array.from({ length: bounds }, (_, i) => i),
        },
      ],
    },
  });
  const metric = (data: ReturnType<typeof histogram>) => ofMetrics({ name: "h", data });
  const tooMuch = (rule: string) => ({ code: Code.ResourceExhausted, rawMessage: expect.stringContaining(rule) });
  const send = (init: MessageInitShape<typeof ExportMetricsServiceRequestSchema>) =>
    client.export(init, { headers }).catch((error: unknown) => ConnectError.from(error));

  test("more data points than BELFRY_RECEIVER_ITEMS_MAX: nothing is stored, and nothing is to be sent again", async () => {
    const refused = await send(request(Array.from({ length: 11 }, (_, i) => ({ value: i }))));
    expect(refused).toMatchObject(tooMuch("a request may have at most 10 data points"));
    expect((refused as ConnectError).details).toEqual([]);
    expect(await counts()).toBe(0);
  });

  test("more than four values for each", async () => {
    expect(await send(metric(histogram(38)))).toMatchObject(
      tooMuch("a request may have at most 40 values, metrics and resources"),
    );
    expect(await counts()).toBe(0);
    expect(await send(metric(histogram(3)))).not.toHaveProperty("partialSuccess");
    expect(await counts()).toBe(4);
  });

  test.each([
    [3, 0],
    [3, 3],
    [1, 2],
  ])("%d buckets with %d bounds: the data point is not taken", async (buckets, bounds) => {
    const before = await counts();
    const rule = `h: bucket_counts must be one more than explicit_bounds, or none: there are ${buckets} and ${bounds}`;
    expect(await send(metric(histogram(buckets, bounds)))).toMatchObject({
      partialSuccess: { rejectedDataPoints: 1n, errorMessage: expect.stringContaining(rule) },
    });
    expect(await counts()).toBe(before);
  });

  test("bounds without buckets say nothing", async () => {
    expect(await send(metric(histogram(0, 2)))).not.toHaveProperty("partialSuccess");
  });

  test("as many log records", async () => {
    const records = Array.from({ length: 11 }, () => ({ eventName: "e" }));
    expect(await tool(small, headers)("POST", "/v1/logs", ofLogs(...records))).toMatchObject({
      status: 413,
      body: { code: 8, message: "a request may have at most 10 log records; send fewer at once" },
    });
  });
});

describe("of a distribution the values that are finite are stored, and it is told which are not", () => {
  const time = () => ({ timeUnixNano: `${Date.now()}000000` });
  const { NaN: none, POSITIVE_INFINITY: endless } = Number;
  const asJson = (value: number) => (Number.isFinite(value) ? value : String(value));
  /** Of two quantiles of which the second is right. */
  const summary = (quantile: number, value: number) => ({
    count: "5",
    sum: 10,
    quantileValues: [
      { quantile: asJson(quantile), value: asJson(value) },
      { quantile: 0.9, value: 7 },
    ],
  });
  const right = { "m.count": 5, "m.sum": 10, 'm{"quantile":"0.9"}': 7 };
  const histogram = (sum: number, min: number, max: number) => ({
    count: "2",
    sum: asJson(sum),
    min: asJson(min),
    max: asJson(max),
    bucketCounts: ["1", "1"],
    explicitBounds: [5],
  });
  const buckets = { 'm.bucket{"le":"5"}': 1, 'm.bucket{"le":"+Inf"}': 2 };
  const cases: [string, string, object, Record<string, number>][] = [
    ["a quantile's value", "summary", summary(0.5, none), right],
    ["a quantile", "summary", summary(none, 3), right],
    ["the sum", "histogram", histogram(none, 1, 3), { "m.count": 2, "m.min": 1, "m.max": 3, ...buckets }],
    ["min and max", "histogram", histogram(4, -endless, endless), { "m.count": 2, "m.sum": 4, ...buckets }],
    [
      "the sum of an exponential histogram",
      "exponentialHistogram",
      { count: "2", sum: "NaN", min: 1, max: 3 },
      { "m.count": 2, "m.min": 1, "m.max": 3 },
    ],
  ];
  const sent = (kind: string, point: object) =>
    ofWeb1({ name: "m", [kind]: { dataPoints: [{ ...time(), ...point }] } });
  const told = "m: values that are not finite are passed over, the rest of the data point is stored";

  test.each(cases)("%s", async (_, kind, point, values) => {
    const inJson = await world();
    expect(await inJson.call("POST", "/v1/metrics", sent(kind, point))).toMatchObject({
      status: 200,
      body: { partialSuccess: { errorMessage: told } },
    });
    expect(await inJson.stored()).toEqual(values);
    const inProtobuf = await world();
    const message = fromJson(ExportMetricsServiceRequestSchema, sent(kind, point) as never);
    const client = grpcClient(MetricsService);
    const { partialSuccess } = await client.export(message, { headers: inProtobuf.tenant.headers });
    expect(partialSuccess).toMatchObject({ rejectedDataPoints: 0n, errorMessage: told });
    expect(await inProtobuf.stored()).toEqual(values);
  });
});

describe("a data point beyond its bounds is refused alone", () => {
  const timeUnixNano = BigInt(Date.now()) * 1_000_000n;
  const many = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i));
  const histogram = (count: number) => ({
    case: "histogram" as const,
    value: {
      dataPoints: [{ timeUnixNano, bucketCounts: many(count, () => 1n), explicitBounds: many(count - 1, (i) => i) }],
    },
  });
  const summary = (count: number) => ({
    case: "summary" as const,
    value: { dataPoints: [{ timeUnixNano, quantileValues: many(count, (i) => ({ quantile: i / count, value: i })) }] },
  });
  const gauge = (more: object) => ({
    case: "gauge" as const,
    value: { dataPoints: [{ timeUnixNano, value: { case: "asDouble" as const, value: 1 }, ...more }] },
  });
  const attributes = (count: number) => ({ attributes: many(count, () => ({ key: "a" })) });
  type Data = Parameters<typeof one>[0];
  const one = (data: ReturnType<typeof histogram> | ReturnType<typeof summary> | ReturnType<typeof gauge>) =>
    create(ExportMetricsServiceRequestSchema, ofMetrics({ name: "beyond", data }, { name: "beside", data: gauge({}) }));
  const large = { value: { case: "bytesValue" as const, value: new Uint8Array(300_000) } };
  const cases: [string, Data, Data, string][] = [
    ["buckets", histogram(1000), histogram(1001), "a data point may have at most 1000 buckets"],
    ["quantiles", summary(1000), summary(1001), "a data point may have at most 1000 quantiles"],
    ["attributes", gauge(attributes(1000)), gauge(attributes(1001)), "a data point may have at most 1000 attributes"],
    [
      "bytes of attributes",
      gauge({}),
      gauge({ attributes: [{ key: "a", value: large }] }),
      "the attributes of a data point may take at most 262144 bytes",
    ],
    [
      "fields",
      gauge({ exemplars: many(9000, () => ({})) }),
      gauge({ exemplars: many(10_000, () => ({})) }),
      "a data point may have at most 10000 fields",
    ],
  ];

  test.each(cases)("%s", async (_, within, beyond, rule) => {
    const { tenant } = await world();
    const client = grpcClient(MetricsService);
    const { headers } = tenant;
    expect((await client.export(one(within), { headers })).partialSuccess).toBeUndefined();
    expect((await client.export(one(beyond), { headers })).partialSuccess).toMatchObject({
      rejectedDataPoints: 1n,
      errorMessage: `beyond: ${rule}`,
    });
  });
});

describe("a log record beyond its bounds is refused alone", () => {
  const attribute = (key: string, size = 1) => ({ key, value: { stringValue: "x".repeat(size) } });
  test.each([
    [
      "attributes",
      { attributes: Array.from({ length: 1001 }, (_, i) => attribute(`${i}`)) },
      "a log record may have at most 1000 attributes",
    ],
    [
      "bytes of attributes",
      { attributes: [attribute("a", 300_000)] },
      "the attributes of a log record may take at most 262144 bytes",
    ],
    [
      "bytes of the body",
      { body: { stringValue: "x".repeat(300_000) } },
      "the body of a log record may take at most 262144 bytes",
    ],
  ])("%s", async (_, more, rule) => {
    const { call } = await world();
    const records = ofLogs({ eventName: "beyond", ...more }, { eventName: "beside" });
    expect(await call("POST", "/v1/logs", records)).toMatchObject({
      status: 200,
      body: { partialSuccess: { rejectedLogRecords: "1", errorMessage: `beyond: ${rule}` } },
    });
  });
});

test("of a resource that no model may have, what fits is the entity's, and its points are stored", async () => {
  const { call, tenant } = await world();
  const attribute = (key: string, size: number) => ({ key, value: { stringValue: "x".repeat(size) } });
  const attributes = [
    attribute("command", 100_000),
    attribute("a", 40_000),
    attribute("b", 40_000),
    attribute("c", 10),
    { key: "host.name", value: { stringValue: "web-1" } },
  ];
  const metrics = [{ name: "m", gauge: { dataPoints: [{ asDouble: 1 }] } }];
  const body = { resourceMetrics: [{ resource: { attributes }, scopeMetrics: [{ metrics }] }] };
  expect(await call("POST", "/v1/metrics", body)).toMatchObject({ status: 200, body: {} });
  const [entity] = await sql`select dimensions, metadata from entities where tenant_id = ${tenant.id}`;
  expect(entity).toEqual({
    dimensions: { "host.name": "web-1" },
    metadata: { a: "x".repeat(40_000), c: "x".repeat(10) },
  });
});

describe("what became of log records", () => {
  const event = (more: object = {}) => ({ eventName: "e", timeUnixNano: BigInt(Date.now()) * 1_000_000n, ...more });
  const named = { key: "event.name", value: { value: { case: "stringValue" as const, value: "named" } } };
  const old = 1_600_000_000_000_000_000n;
  const cases: [string, object[], bigint, string][] = [
    ["none", [], 0n, ""],
    ["an event", [event()], 0n, ""],
    ["an event named by its attribute", [event({ eventName: "", attributes: [named] })], 0n, ""],
    ["no time", [event({ timeUnixNano: 0n })], 0n, ""],
    ["a record that is no event", [event(), event({ eventName: "" })], 1n, "a log record is taken when it is an event"],
    ["too old", [event({ timeUnixNano: old }), event()], 1n, "e: events[0].timestamp: must not be more than "],
  ];
  const message = (records: object[]) => create(ExportLogsServiceRequestSchema, ofLogs(...records));

  test.each(cases)("%s", async (_, records, rejected, text) => {
    const { call, tenant } = await world();
    const overGrpc = await grpcClient(LogsService).export(message(records), { headers: tenant.headers });
    const binary = Buffer.from(toBinary(ExportLogsServiceRequestSchema, message(records)));
    const overHttp = await call("POST", "/v1/logs", binary, { "content-type": "application/x-protobuf" });
    const decoded = fromBinary(ExportLogsServiceResponseSchema, overHttp.bytes);
    const inJson = await call("POST", "/v1/logs", toJsonString(ExportLogsServiceRequestSchema, message(records)));
    for (const { partialSuccess } of [overGrpc, decoded]) {
      expect(partialSuccess?.rejectedLogRecords ?? 0n).toBe(rejected);
      expect(partialSuccess?.errorMessage ?? "").toContain(text);
    }
    expect(inJson.status).toBe(200);
    if (rejected === 0n) expect([inJson.body, overHttp.bytes.length]).toEqual([{}, 0]);
    else expect(inJson.body.partialSuccess.rejectedLogRecords).toBe(String(rejected));
  });
});

describe("what is refused over gRPC has a code by which nothing is sent again", () => {
  const path = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
  const broken = Buffer.from([0x0a, 5, 1]);
  const noUtf8 = Buffer.from([0x0a, 10, 0x12, 8, 0x12, 6, 0x0a, 2, 0xff, 0xff, 0x2a, 0]);
  test.each([
    ["broken Protobuf", broken, {}, Code.InvalidArgument],
    ["a text that is no UTF-8", noUtf8, {}, Code.InvalidArgument],
    ["no key", broken, { "service-api-key": "x" }, Code.Unauthenticated],
    ["16 MiB of empty messages", Buffer.alloc(16 * 2 ** 20, Buffer.from([0x0a, 0])), {}, Code.ResourceExhausted],
    ["more than 16 MiB", Buffer.alloc(17 * 2 ** 20), {}, Code.ResourceExhausted],
  ] as [string, Buffer, Record<string, string>, Code][])("%s", async (_, body, more, code) => {
    const { tenant } = await world();
    const headers = { ...tenant.headers, "content-type": "application/grpc", ...more };
    const answer = await raw(server, "2", { path, headers, body: [encodeEnvelope(0, body)] });
    expect(codeOf(answer)).toBe(code);
    // Clients send again what is exhausted when this says when.
    if (code === Code.ResourceExhausted)
      expect({ ...answer.headers, ...answer.trailers }).not.toHaveProperty("grpc-status-details-bin");
  });
});

describe("what is refused is a Status in the request's encoding", () => {
  const protobuf = { "content-type": "application/x-protobuf" };
  const zipped = { ...protobuf, "content-encoding": "gzip" };
  test.each([
    ["broken Protobuf", "/v1/metrics", Buffer.from([0x0a, 5, 1]), protobuf, 400, 3],
    ["broken JSON", "/v1/metrics", Buffer.from("{"), {}, 400, 3],
    ["broken traces in Protobuf", "/v1/traces", Buffer.from([0x0a, 5, 1]), protobuf, 400, 3],
    ["broken traces in JSON", "/v1/traces", Buffer.from('{"resourceSpans":7}'), {}, 400, 3],
    ["no key, in Protobuf", "/v1/metrics", Buffer.alloc(0), { ...protobuf, authorization: "Bearer x" }, 401, 16],
    ["no key, in JSON", "/v1/logs", Buffer.from("{}"), { authorization: "Bearer x" }, 401, 16],
    ["no key, for traces", "/v1/traces", Buffer.from("{}"), { authorization: "Bearer x" }, 401, 16],
    ["JSON of another type", "/v1/metrics", Buffer.from('{"resourceMetrics":7}'), {}, 400, 3],
    ["broken gzip", "/v1/metrics", Buffer.from("x"), zipped, 400, 3],
    ["another compression", "/v1/metrics", Buffer.from("x"), { ...protobuf, "content-encoding": "zstd" }, 415, 3],
    ["another type", "/v1/logs", Buffer.from("x"), { "content-type": "text/plain" }, 415, 3],
    ["16 MiB of empty messages", "/v1/metrics", Buffer.alloc(16 * 2 ** 20, Buffer.from([0x0a, 0])), protobuf, 413, 8],
    ["too large a body", "/v1/logs", gzipSync(Buffer.alloc(17 * 2 ** 20)), zipped, 413, 8],
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

describe("spans are counted and refused with a success, so that no sender fails", () => {
  const spans = (count: number) => ({
    resourceSpans: [{ resource: {}, scopeSpans: [{ spans: Array.from({ length: count }, () => ({})) }] }],
  });
  const said = { rejectedSpans: 3n, errorMessage: expect.stringMatching(/^traces are not stored here/) };

  test("over gRPC; with a wrong key they are refused for that", async () => {
    const { tenant } = await world();
    const client = grpcClient(TraceService);
    expect(await client.export(spans(3), { headers: tenant.headers })).toMatchObject({ partialSuccess: said });
    expect((await client.export({}, { headers: tenant.headers })).partialSuccess).toBeUndefined();
    const refused = await client.export(spans(1)).catch((error: unknown) => ConnectError.from(error));
    expect(refused).toMatchObject({ code: Code.Unauthenticated });
  });

  test("over HTTP, in Protobuf and JSON, in any form that a span may have", async () => {
    const { call } = await world();
    const body = Buffer.from(
      toBinary(ExportTraceServiceRequestSchema, create(ExportTraceServiceRequestSchema, spans(3))),
    );
    const answer = await call("POST", "/v1/traces", body, { "content-type": "application/x-protobuf" });
    expect(fromBinary(ExportTraceServiceResponseSchema, answer.bytes)).toMatchObject({ partialSuccess: said });
    const span = { traceId: "5b8efff798038103d269b633813fc60c", name: "an order", kind: 2, attributes: [{ key: "a" }] };
    const inJson = { resourceSpans: [{ scopeSpans: [{ scope: { name: "x" }, spans: [span, span, span] }] }] };
    expect(await call("POST", "/v1/traces", inJson)).toMatchObject({
      status: 200,
      body: { partialSuccess: { ...said, rejectedSpans: "3" } },
    });
  });
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
