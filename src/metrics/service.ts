import type { ServiceImpl } from "@connectrpc/connect";
import type { MetricQueryService } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { principalOf } from "../rpc/context.ts";
import { searchMetrics } from "./search.ts";

/** Metrics: search of series. */
export function metricQueryService(db: Db): Partial<ServiceImpl<typeof MetricQueryService>> {
  return {
    searchMetrics(request, context) {
      const { tenantId, tenantName } = principalOf(context);
      return searchMetrics(db, { id: tenantId, name: tenantName }, request, context.signal);
    },
  };
}
