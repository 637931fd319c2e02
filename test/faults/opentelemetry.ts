import { credentials, Metadata } from "@grpc/grpc-js";
import { OTLPLogExporter as GrpcLogs } from "@opentelemetry/exporter-logs-otlp-grpc";
import { OTLPLogExporter as JsonLogs } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPLogExporter as ProtobufLogs } from "@opentelemetry/exporter-logs-otlp-proto";
import { OTLPMetricExporter as GrpcMetrics } from "@opentelemetry/exporter-metrics-otlp-grpc";
import { OTLPMetricExporter as JsonMetrics } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPMetricExporter as ProtobufMetrics } from "@opentelemetry/exporter-metrics-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchLogRecordProcessor,
  LoggerProvider,
  type LogRecordExporter,
  type ReadableLogRecord,
} from "@opentelemetry/sdk-logs";
import {
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import type { Db } from "../../src/db/connect.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { storedSeries } from "../metrics/points.ts";
import type { Part } from "./beside.ts";
import { type Batch, ledger } from "./ledger.ts";
import type { Tenant } from "./stage.ts";

const exportMs = 2000;
const timeoutMillis = 5000;
const scope = "shop";
const bounds = [0.5, 1];
/** Of a log record, and what it becomes: an open event. */
const severity = { number: 17, stored: 4 };
/** What an exporter calls at its end, and what it says then. */
type Ended = Parameters<PushMetricExporter["export"]>[1];
type ExportResult = Parameters<Ended>[0];
const done = 0 as ExportResult["code"];

/** What the SDK hands to an exporter, and how that ended: `noted` hears of it before it is sent, and when it was acknowledged. */
function noting<Items>(
  exporters: readonly { export(items: Items, ended: Ended): void; shutdown(): Promise<void> }[],
  noted: { sent(items: Items): void; acknowledged(items: Items): void },
) {
  let n = 0;
  return {
    export(items: Items, ended: Ended) {
      noted.sent(items);
      exporters[n++ % exporters.length]?.export(items, (result) => {
        if (result.code === done) noted.acknowledged(items);
        ended(result);
      });
    },
    forceFlush: async () => {},
    async shutdown() {
      await Promise.all(exporters.map((exporter) => exporter.shutdown()));
    },
  };
}

/** Values by their times, by metric and labels. */
type Series = Map<string, Map<number, number>>;
const keyOf = (name: string, labels: Record<string, unknown>) =>
  `${name} ${JSON.stringify(Object.entries(labels).sort())}`;

function note(series: Series, key: string, timeMs: number, value: number): void {
  const values = series.get(key) ?? new Map<number, number>();
  series.set(key, values.set(timeMs, value));
}

/** Each value of an export, as it must be stored. */
function noteAll(series: Series, { scopeMetrics }: ResourceMetrics): void {
  for (const metric of scopeMetrics.flatMap(({ metrics }) => metrics)) {
    const { name } = metric.descriptor;
    for (const { endTime, attributes, value } of metric.dataPoints) {
      const timeMs = endTime[0] * 1000 + Math.floor(endTime[1] / 1e6);
      const own = { ...attributes, "otel.scope.name": scope };
      if (typeof value === "number") note(series, keyOf(name, own), timeMs, value);
      else if ("buckets" in value) {
        const {
          count,
          sum = 0,
          min = 0,
          max = 0,
          buckets,
        } = value as { count: number; sum?: number; min?: number; max?: number; buckets: { counts: number[] } };
        for (const [suffix, number] of Object.entries({ count, sum, min, max }))
          note(series, keyOf(`${name}.${suffix}`, own), timeMs, number);
        let below = 0;
        for (const [i, inside] of buckets.counts.entries()) {
          below += inside;
          note(series, keyOf(`${name}.bucket`, { ...own, le: String(bounds[i] ?? "+Inf") }), timeMs, below);
        }
      }
    }
  }
}

/** What is stored of a tenant's series and must not be so: acknowledged ⊆ stored ⊆ sent, each time once. */
async function comparePoints(db: Db, tenantId: string, sent: Series, acknowledged: Series): Promise<string[]> {
  const wrong: string[] = [];
  const found: Series = new Map();
  for (const { metric, labels, points } of await storedSeries(
    db,
    tenantId,
    Date.now() - 86_400_000,
    Date.now() + 600_000,
  )) {
    const key = keyOf(metric, labels);
    const values = new Map(points);
    if (found.has(key)) wrong.push(`${key} is there twice`);
    if (values.size !== points.length) wrong.push(`${key}: ${points.length - values.size} points are there twice`);
    found.set(key, values);
    for (const [timeMs, value] of values)
      if (sent.get(key)?.get(timeMs) !== value)
        wrong.push(`${key} at ${timeMs}: ${value}, sent was ${sent.get(key)?.get(timeMs)}`);
  }
  for (const [key, values] of acknowledged)
    for (const [timeMs, value] of values)
      if (found.get(key)?.get(timeMs) !== value)
        wrong.push(`${key} at ${timeMs}: ${found.get(key)?.get(timeMs)}, acknowledged ${value}`);
  return wrong.slice(0, 10);
}

const itemOf = (host: string, { hrTime, eventName = "", body }: ReadableLogRecord): EventItem => ({
  name: eventName,
  type: "",
  summary: "",
  body: String(body),
  metadata: {},
  acknowledged: undefined,
  dimensions: { "host.name": host },
  timeMs: BigInt(hrTime[0] * 1000 + Math.floor(hrTime[1] / 1e6)),
  severity: severity.stored,
  status: Status.OPEN,
});

/** The SDK's exporters of one protocol, one for each server. */
function exportersOf(protocol: string, urls: readonly string[], key: string) {
  if (protocol === "grpc") {
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${key}`);
    const to = (url: string) => ({ url, credentials: credentials.createInsecure(), metadata, timeoutMillis });
    return { metrics: urls.map((url) => new GrpcMetrics(to(url))), logs: urls.map((url) => new GrpcLogs(to(url))) };
  }
  const to = (url: string) => ({ url, headers: { authorization: `Bearer ${key}` }, timeoutMillis });
  const [Metrics, Logs] = protocol === "http/json" ? [JsonMetrics, JsonLogs] : [ProtobufMetrics, ProtobufLogs];
  return {
    metrics: urls.map((url) => new Metrics(to(`${url}/v1/metrics`))),
    logs: urls.map((url) => new Logs(to(`${url}/v1/logs`))),
  };
}

/**
 * OpenTelemetry's SDK, in each of its protocols: it exports metrics with labels, and log records that are events, to each server in turn. What it
 * heard has been taken is stored, once; what it gave up may be.
 */
export function opentelemetry(
  urls: readonly string[],
  { id: tenantId, agent }: Tenant,
): Part & { stop(): Promise<void> } {
  const [sent, acknowledged]: Series[] = [new Map(), new Map()] as [Series, Series];
  const events = ledger();
  let exports = 0;
  const programs = ["grpc", "http/protobuf", "http/json"].map((protocol) => {
    const host = `host of ${protocol}`;
    const resource = resourceFromAttributes({ "host.name": host });
    const exporters = exportersOf(protocol, urls, agent["service-api-key"] as string);
    const batches = new Map<ReadableLogRecord[], Batch>();
    const metricExporter: PushMetricExporter = noting<ResourceMetrics>(exporters.metrics, {
      sent: (metrics) => noteAll(sent, metrics),
      acknowledged(metrics) {
        exports += 1;
        noteAll(acknowledged, metrics);
      },
    });
    const logExporter: LogRecordExporter = noting<ReadableLogRecord[]>(exporters.logs, {
      sent(records) {
        const batch: Batch = { kind: "events", shared: true, items: records.map((record) => itemOf(host, record)) };
        batches.set(records, batch);
        events.sent(batch);
      },
      acknowledged(records) {
        events.acknowledged(batches.get(records) as Batch);
        batches.delete(records);
      },
    });
    const reader = new PeriodicExportingMetricReader({
      exporter: metricExporter,
      exportIntervalMillis: exportMs,
      exportTimeoutMillis: exportMs - 1,
    });
    const meters = new MeterProvider({ resource, readers: [reader] });
    const loggers = new LoggerProvider({
      resource,
      processors: [new BatchLogRecordProcessor({ exporter: logExporter, scheduledDelayMillis: exportMs })],
    });
    const meter = meters.getMeter(scope);
    const orders = meter.createCounter("orders");
    const queue = meter.createGauge("queue");
    const latency = meter.createHistogram("latency", { advice: { explicitBucketBoundaries: bounds } });
    const logger = loggers.getLogger(scope);
    return {
      async stop() {
        await Promise.allSettled([meters.shutdown(), loggers.shutdown()]);
      },
      work(n: number) {
        for (const shop of ["a", "b", "c"]) orders.add(1, { shop, protocol });
        queue.record(n % 17, { protocol });
        latency.record((n % 13) / 8, { protocol });
        // Times by the millisecond keep instances apart.
        logger.emit({
          eventName: "order failed",
          severityNumber: severity.number,
          body: `${n}`,
          timestamp: Date.now(),
        });
      },
    };
  });
  const stop = async () => void (await Promise.all(programs.map((program) => program.stop())));
  return {
    beside: {
      name: "turns of OpenTelemetry's SDK",
      restMs: 250,
      async turn(n) {
        for (const { work } of programs) work(n);
      },
    },
    progress: () =>
      `OpenTelemetry: ${exports} exports and ${events.counts.acknowledged} of ${events.counts.sent} log records acknowledged`,
    stop,
    async compare(db) {
      await stop();
      const wrong = [
        ...(await comparePoints(db, tenantId, sent, acknowledged)),
        ...(await events.compare(db, tenantId)),
      ];
      if (exports === 0 || events.counts.acknowledged === 0) wrong.push("OpenTelemetry's SDK got nothing through");
      return wrong.map((line) => `OpenTelemetry: ${line}`);
    },
  };
}
