import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { type Calls, nothing } from "../support/calls.ts";

export const calls: Calls = {
  "MetricQueryService/SearchMetrics": nothing(async ({ client, mark }) => {
    const nowMs = Date.now();
    await client(DataReceiverService).putMetrics({
      metrics: [{ metric: mark, timestamp: BigInt(nowMs), value: 1, dimensions: { source: mark } }],
    });
    const value = { kind: { case: "stringValue" as const, value: mark } };
    return {
      entityClause: { filter: { field: "source", operation: 1, value } },
      timeRange: { start: timestampFromMs(nowMs - 60_000), end: timestampFromMs(nowMs + 60_000) },
      downsample: { aggregator: Aggregator.LAST, period: "1h" },
    };
  }),
};
