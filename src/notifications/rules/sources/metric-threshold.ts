import type { MetricThresholdSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { labelsPredicate } from "../../../metrics/metric-clause.ts";
import { checkEntityQuery, entityQueryTrouble, meansOf } from "./entity-query.ts";
import { metricData, type TriggerSource } from "./source.ts";

/** Values of a metric that leave their bounds. */
export const metricThreshold: TriggerSource<MetricThresholdSource> = {
  check({ metricClause, ...source }, path) {
    checkEntityQuery(source, path);
    if (metricClause !== undefined) labelsPredicate(metricClause, `${path}.metricClause`);
  },

  doubt: entityQueryTrouble,

  ready: ({ metricClause, ...source }, fields) => ({
    means: meansOf(source, fields),
    meansLabels: metricClause && labelsPredicate(metricClause, "clause"),
  }),

  data: ({ metricName }) => [metricData(metricName)],
};
