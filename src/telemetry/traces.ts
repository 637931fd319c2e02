import { Code } from "@connectrpc/connect";
import type { HrTime } from "@opentelemetry/api";
import type { RequestRecord } from "../rpc/context.ts";
import { codeName } from "../rpc/log.ts";
import { version } from "../version.ts";
import { type ProtocolName, protocolOf } from "./requests.ts";

/** What a trace takes of a request. */
export interface TracedRequest {
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Spans of calls, sent by OTLP. */
export interface Traces {
  /** A call has ended: makes a span of it, within the trace of its caller where the headers name one. */
  note(record: RequestRecord, request: TracedRequest): void;
  /** Sends what waits, for some seconds at most. */
  stop(): Promise<void>;
}

const stopMsMax = 3000;
const systems: Readonly<Record<ProtocolName, string>> = {
  grpc: "grpc",
  "grpc-web": "grpc",
  connect: "connectrpc",
  json: "http_json",
};
/** Codes that say that the server has failed, rather than its caller (OpenTelemetry's conventions for gRPC). */
const faults = new Set<number>([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

/** Loads OpenTelemetry's SDK, and sends to `<url>/v1/traces`. How, and which calls, it reads in the OTEL_* variables itself. */
export async function openTraces(url: string): Promise<Traces> {
  const [{ createTraceState, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace }, exporting, resources, sdk] =
    await Promise.all([
      import("@opentelemetry/api"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
      import("@opentelemetry/sdk-trace-base"),
    ]);
  const own = resources.resourceFromAttributes({ "service.name": "belfry", "service.version": version });
  const detectors = [resources.serviceInstanceIdDetector, resources.envDetector];
  const provider = new sdk.BasicTracerProvider({
    // What the environment says of the service goes before ours.
    resource: resources.defaultResource().merge(own).merge(resources.detectResources({ detectors })),
    spanProcessors: [new sdk.BatchSpanProcessor(new exporting.OTLPTraceExporter({ url: `${url}/v1/traces` }))],
  });
  const tracer = provider.getTracer("belfry", version);

  function callerOf(headers: TracedRequest["headers"]) {
    const parent = traceparentOf(headers.traceparent);
    if (parent === undefined) return ROOT_CONTEXT;
    const { tracestate } = headers;
    const traceState = typeof tracestate === "string" ? { traceState: createTraceState(tracestate) } : {};
    return trace.setSpanContext(ROOT_CONTEXT, { ...parent, ...traceState, isRemote: true });
  }

  return {
    note(record, { url, headers }) {
      const { rpc, code = 0, requestId, startMs } = record;
      if (rpc === undefined) return;
      const span = tracer.startSpan(
        rpc,
        {
          kind: SpanKind.SERVER,
          startTime: timeOf(startMs),
          attributes: {
            "rpc.system.name": systems[protocolOf(url, headers["content-type"] as string | undefined)],
            "rpc.method": rpc,
            "rpc.status_code": codeName(code),
            "belfry.request_id": requestId,
          },
        },
        callerOf(headers),
      );
      if (code !== 0) span.setAttribute("error.type", codeName(code));
      if (faults.has(code)) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(timeOf(performance.now()));
    },
    async stop() {
      const late = new Promise<void>((resolve) => setTimeout(resolve, stopMsMax).unref());
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
    },
  };
}

/** A moment on the clock of `performance.now()` as OpenTelemetry writes it. */
function timeOf(ms: number): HrTime {
  const sinceEpochMs = performance.timeOrigin + ms;
  const sec = Math.floor(sinceEpochMs / 1000);
  return [sec, Math.round((sinceEpochMs - sec * 1000) * 1e6)];
}

/** The caller's span (W3C Trace Context, version 00 and what later ones begin with); undefined where none is named. */
function traceparentOf(header: string | string[] | undefined) {
  const found = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/.exec(
    String(header),
  );
  if (found === null) return undefined;
  const [, traceId = "", spanId = "", flags = ""] = found;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1 };
}
