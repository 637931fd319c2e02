import { expect, test } from "vitest";
import { enums, messages } from "./schema.ts";

/** As existing agents send and read them: a number that changes breaks every one of them. */
const receiver = `
Event: timestamp 1, name 2, dimensions 3, metadata_fields 4, type 5, summary 6, body 7, severity 8, status 9, acknowledged 10, dedup_key 16, expires_at 17
Metric: metric 1, timestamp 2, value 3, dimensions 4, metadata_fields 6, labels 16
TaggedMetric: metric 1, timestamp 2, value 3, tags 4
CompactMetric: id 1, timestamp 2, value 3
Model: timestamp 1, dimensions 2, metadata_fields 3
PutEventsRequest: detailed_response 1, events 2
PutModelsRequest: detailed_response 1, models 2
PutMetricsRequest: detailed_response 1, compact_metrics 3, tagged_metrics 4, metrics 5
PutEventsResponse: failed 1, succeeded 2, message 3, failed_events 4
PutModelsResponse: failed 1, succeeded 2, message 3, failed_models 4
PutMetricsResponse: failed 1, succeeded 2, message 3, failed_compact_metrics 4, failed_tagged_metrics 5, failed_metrics 6
PutEventResponse: failed 1, succeeded 2, message 3, failed_events 4
PutModelResponse: failed 1, succeeded 2, message 3, failed_models 4
PutMetricResponse: failed 1, succeeded 2, message 3, failed_compact_metrics 4, failed_tagged_metrics 5, failed_metrics 6
FailedEvent: error 1, event 2
FailedModel: error 1, model 2
FailedMetric: error 1, metric 2
PutEventRequest: canonical 1
PutModelRequest: canonical 1
PutMetricRequest: tagged 1, compact 2, canonical 3
`;

test.each(receiver.trim().split("\n"))("numbers of the receiver's %s", (row) => {
  const [name] = row.split(":");
  const found = messages.find((desc) => desc.typeName === `belfry.receiver.v1.${name}`);
  expect(`${name}: ${found?.fields.map((field) => `${field.name} ${field.number}`).join(", ")}`).toBe(row);
});

test.each([
  ["belfry.events.v1.Severity", ["DEFAULT", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], "SEVERITY_"],
  ["belfry.events.v1.Status", ["DEFAULT", "OPEN", "SUPPRESSED", "CLOSED"], "STATUS_"],
  [
    "belfry.clause.v1.Operation",
    "UNSPECIFIED EQUALS NOT_EQUALS CONTAINS NOT_CONTAINS STARTS_WITH END_WITH GREATER GREATER_OR_EQ LESS LESS_OR_EQ EXISTS REGEX TEXT IN NOT_IN".split(
      " ",
    ),
    "OP_",
  ],
  [
    "belfry.metrics.v1.Aggregator",
    "AGGREGATOR_UNSPECIFIED COUNT DELTA INTERPOLATE LAST MAX MEAN MIN NEXT_OLDER NONE P5 P50 P95 P99 RATE STDDEV SUM".split(
      " ",
    ),
    "",
  ],
  ["belfry.maintenance.v1.RunMode", ["AUTO", "MANUAL"], ""],
  ["belfry.maintenance.v1.WindowStatus", ["ENABLED", "DISABLED"], ""],
  [
    "belfry.entities.v1.FieldKind",
    ["PROPERTY", "CORE_PROPERTY", "DIMENSION", "CUSTOM_PROPERTY", "METADATA_FIELD"],
    "FIELD_KIND_",
  ],
  ["belfry.entities.v1.Order", ["ASCENDING", "DESCENDING"], "ORDER_"],
  ["belfry.entities.v1.FieldSelection", ["CORE", "ALL"], "FIELD_SELECTION_"],
])("%s counts from 0", (name, values, prefix) => {
  const found = enums.find((desc) => desc.typeName === name);
  expect(found?.values.map((value) => [value.number, value.name])).toEqual(
    values.map((value, i) => [i, prefix + value]),
  );
});

test("a number that a message skips is reserved, so that no field takes it by chance", () => {
  const skipped = messages.flatMap(({ typeName, fields, proto }) => {
    const taken = new Set(fields.map(({ number }) => number));
    const isReserved = (number: number) =>
      proto.reservedRange.some(({ start, end }) => start <= number && number < end);
    const upTo = Array.from({ length: Math.max(0, ...taken) }, (_, i) => i + 1);
    return upTo.filter((number) => !taken.has(number) && !isReserved(number)).map((number) => `${typeName}: ${number}`);
  });
  expect(skipped).toEqual([]);
});
