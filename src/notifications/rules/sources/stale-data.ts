import { type StaleDataSource, StaleDataSourceSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { field } from "#gen/buf/validate/validate_pb.ts";
import { optionOf } from "../../../proto-option.ts";
import { checkEntityQuery, entityQueryTrouble, meansOf } from "./entity-query.ts";
import { eventData, metricData, type TriggerSource } from "./source.ts";

const durationSecMax = longestDuration();

function longestDuration(): bigint {
  const { type } = optionOf(StaleDataSourceSchema.field.durationSec, field);
  if (type.case !== "int64" || type.value.lessThan.case !== "lte") throw new Error("durationSec has no bound");
  return type.value.lessThan.value;
}

/** Data that stay away. */
export const staleDataTrigger: TriggerSource<StaleDataSource> = {
  check: checkEntityQuery,

  fit(source) {
    if (source.durationSec > durationSecMax) source.durationSec = durationSecMax;
  },

  doubt: entityQueryTrouble,

  ready: (source, fields) => ({ means: meansOf(source, fields) }),

  data: ({ metricName, eventName }) => [
    ...(metricName === "" ? [] : [metricData(metricName)]),
    ...(eventName === "" ? [] : [eventData(eventName)]),
  ],
};
