import { create } from "@bufbuild/protobuf";
import {
  type ExportTraceServiceResponse,
  ExportTraceServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.ts";
import { ResourceSpansSchema, ScopeSpansSchema } from "#gen/opentelemetry/proto/trace/v1/trace_pb.ts";
import type { OperationCall } from "../integration.ts";
import type { Walk } from "./fields.ts";
import { eachRecord } from "./resource-parts.ts";

const notStored =
  "traces are not stored here: send metrics to /v1/metrics, and events as log records to /v1/logs; OTEL_TRACES_EXPORTER=none keeps an SDK from sending traces";

/** Counts the spans, of which none is stored: an error would make some SDKs raise an exception. @throws code 3 where it is no Protobuf, code 8 where it holds too much */
export async function exportTraces(
  body: Uint8Array,
  call: OperationCall,
  { walk, spansMax }: { walk: Walk; spansMax: number },
): Promise<ExportTraceServiceResponse> {
  let spans = 0;
  const of = {
    scopes: ResourceSpansSchema.field.scopeSpans.number,
    records: ScopeSpansSchema.field.spans.number,
    what: "spans",
    max: spansMax,
  };
  await eachRecord(body, of, call, walk, () => {
    spans += 1;
    return undefined;
  });
  call.count("refused", spans);
  if (spans === 0) return create(ExportTraceServiceResponseSchema);
  return create(ExportTraceServiceResponseSchema, {
    partialSuccess: { rejectedSpans: BigInt(spans), errorMessage: notStored },
  });
}
