import type { IncomingHttpHeaders } from "node:http";
import { create, createRegistry, type DescMethod, type Message, toBinary, toJsonString } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectError } from "@connectrpc/connect";
import { Permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import type { EventSchema, ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import { LogsService } from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { MetricsService } from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { TraceService } from "#gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.ts";
import type { Config } from "../../config/settings.ts";
import type { ModelItem } from "../../entities/put.ts";
import type { EventItem } from "../../events/ingest.ts";
import type { PointKinds } from "../../receiver/points.ts";
import type { PutKind } from "../../receiver/put.ts";
import { refusalOf } from "../../wire/status.ts";
import type { Answer, Integration, Operation, OperationCall } from "../integration.ts";
import { sentAgain } from "../sent-again.ts";
import { exportLogs } from "./export-logs.ts";
import { exportMetrics } from "./export-metrics.ts";
import { exportTraces } from "./export-traces.ts";
import { walkOf } from "./fields.ts";
import { identities, type KeepsIdentity } from "./identities.ts";
import { protobufOfJson } from "./protobuf-of-json.ts";
import { resourceModels } from "./resource-models.ts";

/** What OTLP works with here. */
export interface OpenTelemetryParts {
  config: Pick<Config, "receiverBytesMax" | "receiverItemsMax">;
  points: Pick<PointKinds, "putChecked" | "known">;
  events: PutKind<typeof EventSchema, EventItem>;
  models: PutKind<typeof ModelSchema, ModelItem>;
  keepsIdentity: KeepsIdentity;
}

/** What OpenTelemetry's SDKs and its Collector send: OTLP 1.x, over gRPC and HTTP. */
export function openTelemetry({
  config,
  points,
  events,
  models: modelsKind,
  keepsIdentity,
}: OpenTelemetryParts): Integration {
  const { receiverBytesMax: bytesMax, receiverItemsMax: itemsMax } = config;
  const models = resourceModels(modelsKind);
  const known = identities(keepsIdentity);
  const metrics = { points, models, identities: known, pointsMax: itemsMax };
  const logs = { events, models, identities: known, recordsMax: itemsMax };
  const begin = () => walkOf(bytesMax);
  return {
    name: "opentelemetry",
    refuse: (error, status, headers) => refusal(error, status, isJson(headers)),
    refuseRpc: sentAgain,
    operations: [
      exported(MetricsService.method.export, "metrics", bytesMax, (body, call) =>
        exportMetrics(metrics, body, call, begin()),
      ),
      exported(LogsService.method.export, "logs", bytesMax, (body, call) => exportLogs(logs, body, call, begin)),
      exported(TraceService.method.export, "traces", bytesMax, (body, call) =>
        exportTraces(body, call, { walk: begin(), spansMax: itemsMax }),
      ),
    ],
  };
}

const jsonType = "application/json";
const protobufType = "application/x-protobuf";
const mediaOf = ({ "content-type": type = "" }: IncomingHttpHeaders) => type.split(";")[0]?.trim().toLowerCase();
const isJson = (headers: IncomingHttpHeaders) => mediaOf(headers) === jsonType;

/** A method, over gRPC and HTTP. */
function exported(
  method: DescMethod,
  signal: "metrics" | "logs" | "traces",
  bytesMax: number,
  take: (body: Buffer, call: OperationCall) => Promise<Message>,
): Operation {
  return {
    name: `export${signal.charAt(0).toUpperCase()}${signal.slice(1)}`,
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
      const message = json ? await protobufOfJson(body, method.input, bytesMax, call) : body;
      const answer = await take(message, call);
      return json
        ? { status: 200, headers: { "content-type": jsonType }, body: toJsonString(method.output, answer) }
        : { status: 200, headers: { "content-type": protobufType }, body: toBinary(method.output, answer) };
    },
  };
}

const registry = createRegistry(RetryInfoSchema);

/** A `google.rpc.Status`, in the form of the request. Clients send again what failed with 429, 502, 503 or 504 alone. */
function refusal(refused: ConnectError, status: number, json: boolean): Answer {
  const error = sentAgain(refused);
  const again = error.metadata.get("retry-after");
  const headers = {
    ...(again !== null && { "retry-after": again }),
    "content-type": json ? jsonType : protobufType,
  };
  const answer = create(StatusSchema, {
    code: error.code,
    message: error.rawMessage.toWellFormed(),
    details: error.findDetails(RetryInfoSchema).map((info) => anyPack(RetryInfoSchema, info)),
  });
  const body = json ? toJsonString(StatusSchema, answer, { registry }) : toBinary(StatusSchema, answer);
  return { status: error === refused ? status : 503, headers, body };
}
