import { create, type DescMessage, type MessageInitShape, toBinary, toJsonString } from "@bufbuild/protobuf";
// @ts-expect-error: the package has no types
import { compress } from "snappyjs";
import {
  ExportLogsServiceRequestSchema,
  LogsService,
} from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import {
  ExportMetricsServiceRequestSchema,
  MetricsService,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { SeverityNumber } from "#gen/opentelemetry/proto/logs/v1/logs_pb.ts";
import { WriteRequestSchema } from "#gen/prometheus/remote_write_pb.ts";
import { envelope, type RawRequest } from "../support/clients.ts";

/** What a tool sends, and the name of the event or of the metric that becomes of it. */
interface ToolRequest extends RawRequest {
  readonly stores: { readonly event?: string; readonly metric?: string };
}

const attributes = [{ key: "host.name", value: { value: { case: "stringValue" as const, value: "web-1" } } }];

function exported<S extends DescMessage>(schema: S, message: MessageInitShape<S>, form: "grpc" | "protobuf" | "json") {
  const whole = create(schema, message);
  if (form === "json") return { type: "application/json", bytes: Buffer.from(toJsonString(schema, whole)) };
  const bytes = Buffer.from(toBinary(schema, whole));
  if (form === "grpc") return { type: "application/grpc", bytes: envelope(bytes) };
  return { type: "application/x-protobuf", bytes };
}

function logs(form: "grpc" | "protobuf" | "json"): ToolRequest {
  const event = `OTLP log over ${form}`;
  const record = {
    eventName: event,
    timeUnixNano: BigInt(Date.now()) * 1_000_000n,
    severityNumber: SeverityNumber.ERROR,
  };
  const resourceLogs = [{ resource: { attributes }, scopeLogs: [{ logRecords: [record] }] }];
  const { type, bytes } = exported(ExportLogsServiceRequestSchema, { resourceLogs }, form);
  const path = form === "grpc" ? `/${LogsService.typeName}/Export` : "/v1/logs";
  return { path, headers: { "content-type": type }, body: [bytes], stores: { event } };
}

function metrics(form: "grpc" | "protobuf" | "json"): ToolRequest {
  const metric = `otlp.${form}`;
  const point = { timeUnixNano: BigInt(Date.now()) * 1_000_000n, value: { case: "asDouble" as const, value: 1 } };
  const gauge = { name: metric, data: { case: "gauge" as const, value: { dataPoints: [point] } } };
  const resourceMetrics = [{ resource: { attributes }, scopeMetrics: [{ metrics: [gauge] }] }];
  const { type, bytes } = exported(ExportMetricsServiceRequestSchema, { resourceMetrics }, form);
  const path = form === "grpc" ? `/${MetricsService.typeName}/Export` : "/v1/metrics";
  return { path, headers: { "content-type": type }, body: [bytes], stores: { metric } };
}

function remoteWrite(): ToolRequest {
  const labels = Object.entries({ __name__: "up", instance: "a:9100", job: "node" });
  const series = {
    labels: labels.map(([name, value]) => ({ name, value })),
    samples: [{ timestamp: BigInt(Date.now()), value: 1 }],
  };
  const bytes = toBinary(WriteRequestSchema, create(WriteRequestSchema, { timeseries: [series] }));
  const headers = { "content-type": "application/x-protobuf", "content-encoding": "snappy" };
  return { path: "/api/v1/write", headers, body: [Buffer.from(compress(bytes))], stores: { metric: "up" } };
}

function alert(): ToolRequest {
  const event = "an alert";
  const alerts = [{ labels: { alertname: event, job: "node", instance: "a:9100" } }];
  const headers = { "content-type": "application/json" };
  return { path: "/api/v2/alerts", headers, body: [Buffer.from(JSON.stringify(alerts))], stores: { event } };
}

/** One of each kind that other tools send. */
export function toolRequests(): ToolRequest[] {
  const forms = ["grpc", "protobuf", "json"] as const;
  return [alert(), remoteWrite(), ...forms.map(logs), ...forms.map(metrics)];
}
