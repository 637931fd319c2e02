import type { IncomingHttpHeaders } from "node:http";
import { create, createRegistry, type DescMethod, type Message, toBinary, toJsonString } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectError } from "@connectrpc/connect";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import type { EventSchema, ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import {
  type ExportLogsServiceRequest,
  LogsService,
} from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import {
  type ExportMetricsServiceRequest,
  MetricsService,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import type { Config } from "../../config/settings.ts";
import type { ModelItem } from "../../entities/put.ts";
import type { EventItem } from "../../events/ingest.ts";
import { messageReader } from "../../http/message-decoder.ts";
import type { PointKinds } from "../../receiver/points.ts";
import type { PutKind } from "../../receiver/put.ts";
import { refusalOf } from "../../wire/status.ts";
import type { Answer, Call, Integration, Operation } from "../integration.ts";
import { exportLogs } from "./export-logs.ts";
import { exportMetrics } from "./export-metrics.ts";
import { resourceModels } from "./resource-models.ts";

/** What OTLP works with here. */
export interface OpenTelemetryParts {
  config: Pick<Config, "receiverBytesMax" | "receiverItemsMax">;
  points: Pick<PointKinds, "putChecked">;
  events: PutKind<typeof EventSchema, EventItem>;
  models: PutKind<typeof ModelSchema, ModelItem>;
}

/** What OpenTelemetry's SDKs and its Collector send: OTLP 1.x, over gRPC and HTTP. */
export function openTelemetry(parts: OpenTelemetryParts): Integration {
  const models = resourceModels(parts.models);
  const { points, events } = parts;
  return {
    name: "opentelemetry",
    refuse: (error, status, headers) => refusal(error, status, isJson(headers)),
    operations: [
      exported(parts, MetricsService.method.export, "metrics", (message, call, bytes) =>
        exportMetrics({ points, models }, message as ExportMetricsServiceRequest, call, bytes),
      ),
      exported(parts, LogsService.method.export, "logs", (message, call, bytes) =>
        exportLogs({ events, models }, message as ExportLogsServiceRequest, call, bytes),
      ),
      {
        name: "exportTraces",
        routes: [{ method: "POST", path: "/v1/traces" }],
        permission: Permission.INGEST,
        notServed: true,
        serve() {
          throw refusalOf(
            Code.NotFound,
            404,
            "traces are not stored here: send metrics to /v1/metrics, and events as log records to /v1/logs",
          );
        },
      },
    ],
  };
}

const jsonType = "application/json";
const protobufType = "application/x-protobuf";
const mediaOf = ({ "content-type": type = "" }: IncomingHttpHeaders) => type.split(";")[0]?.trim().toLowerCase();
const isJson = (headers: IncomingHttpHeaders) => mediaOf(headers) === jsonType;

/** A method, over gRPC and HTTP. */
function exported(
  { config }: OpenTelemetryParts,
  method: DescMethod,
  signal: "metrics" | "logs",
  take: (message: Message, call: Call, bytes: number) => Promise<Message>,
): Operation {
  const reader = messageReader(method, { bytesMax: config.receiverBytesMax, itemsMax: config.receiverItemsMax });
  return {
    name: signal === "metrics" ? "exportMetrics" : "exportLogs",
    routes: [{ method: "POST", path: `/v1/${signal}` }, { grpc: `${method.parent.typeName}/${method.name}` }],
    permission: Permission.INGEST,
    lane: signal === "metrics" ? "metrics" : "events",
    body: "unpacked",
    async serve(call, body): Promise<Answer> {
      const json = !call.overGrpc && isJson(call.headers);
      if (!call.overGrpc && !json && mediaOf(call.headers) !== protobufType)
        throw refusalOf(
          Code.InvalidArgument,
          415,
          `the content type must be ${protobufType} or ${jsonType}, not ${JSON.stringify(String(call.headers["content-type"] ?? "").slice(0, 100))}`,
        );
      const message = await reader.read(body, !json, call);
      const answer = await take(message, call, body.length);
      return json
        ? { status: 200, headers: { "content-type": jsonType }, body: toJsonString(method.output, answer) }
        : { status: 200, headers: { "content-type": protobufType }, body: toBinary(method.output, answer) };
    },
  };
}

const registry = createRegistry(RetryInfoSchema);

/** A `google.rpc.Status`, in the form of the request. Clients send again what failed with 429, 502, 503 or 504 alone. */
function refusal(error: ConnectError, status: number, json: boolean): Answer {
  const retries = error.findDetails(RetryInfoSchema).map((info) => anyPack(RetryInfoSchema, info));
  const message = error.rawMessage.toWellFormed();
  const headers: Record<string, string> =
    status === 503 ? { "retry-after": error.metadata.get("retry-after") ?? "1" } : {};
  const answer = create(StatusSchema, { code: error.code, message, details: retries });
  if (json)
    return {
      status,
      headers: { ...headers, "content-type": jsonType },
      body: toJsonString(StatusSchema, answer, { registry }),
    };
  return { status, headers: { ...headers, "content-type": protobufType }, body: toBinary(StatusSchema, answer) };
}
