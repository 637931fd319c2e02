import { create } from "@bufbuild/protobuf";
import {
  FailedCompactMetricSchema,
  FailedMetricSchema,
  FailedTaggedMetricSchema,
} from "#gen/belfry/receiver/v1/receiver_pb.ts";
import type { PutMetricRequest } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { pointOf } from "./points.ts";
import { counts, type PutOutcome } from "./put.ts";

/** What both answers to points say; the failed ones in the lists of their forms. */
export function pointAnswer(outcome: PutOutcome<PutMetricRequest>) {
  const points = outcome.failed.map(({ error, item }) => ({ error, ...pointOf(item) }));
  return {
    ...counts(outcome, "metrics"),
    failedCompactMetrics: points.flatMap(({ error, ...point }) =>
      point.case === "compact" ? create(FailedCompactMetricSchema, { error, metric: point.value }) : [],
    ),
    failedTaggedMetrics: points.flatMap(({ error, ...point }) =>
      point.case === "tagged" ? create(FailedTaggedMetricSchema, { error, metric: point.value }) : [],
    ),
    failedMetrics: points.flatMap(({ error, ...point }) =>
      point.case === "canonical" ? create(FailedMetricSchema, { error, metric: point.value }) : [],
    ),
  };
}
