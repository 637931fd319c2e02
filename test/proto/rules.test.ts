import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, test } from "vitest";
import { ClauseSchema, FilterSchema, type Operation, TimeRangeSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { TriggerClauseSchema, TriggerValueSchema } from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import { EntityFieldSchema } from "#gen/belfry/dictionary/v1/entity_field_pb.ts";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { type ActiveCriteria, EventQuerySchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { type Direction, PageInputSchema } from "#gen/belfry/paging/v1/paging_pb.ts";
import { EventSchema, MetricSchema, ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { PutEventsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { UserGroupSchema } from "#gen/belfry/users/v1/user_group_pb.ts";

const validator = createValidator();

/** The fields that break a rule, as protovalidate writes them. */
function broken<Desc extends DescMessage>(schema: Desc, message: MessageInitShape<Desc>): string[] {
  const result = validator.validate(schema, create(schema, message));
  if (result.kind === "error") throw result.error;
  return (result.violations ?? []).map((violation) => violation.toString().replace(/: .*/s, ""));
}

const dimensions = { source: "r1" };
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`d${i}`, "x"]));
const undeclared = 99 as Severity & Operation & Direction & ActiveCriteria;

describe("an item of the receiver", () => {
  const event = { timestamp: 1n, name: "link down", dimensions };
  const point = { timestamp: 1n, metric: "if.in", value: 0, dimensions };

  test("is good with what it needs", () => {
    expect(broken(EventSchema, event)).toEqual([]);
    expect(broken(MetricSchema, point)).toEqual([]);
    expect(broken(ModelSchema, { timestamp: 1n, dimensions: many(64) })).toEqual([]);
    expect(broken(EventSchema, { ...event, summary: "é".repeat(128), type: "", body: "a\nb" })).toEqual([]);
  });

  test("needs a time, a name, a value and dimensions", () => {
    expect(broken(EventSchema, {})).toEqual(["timestamp", "name", "dimensions"]);
    expect(broken(MetricSchema, {})).toEqual(["metric", "timestamp", "value", "dimensions"]);
    expect(broken(ModelSchema, {})).toEqual(["timestamp", "dimensions"]);
  });

  test("keeps to the limits", () => {
    expect(broken(EventSchema, { ...event, summary: "x".repeat(129) })).toEqual(["summary"]);
    expect(broken(EventSchema, { ...event, name: "x".repeat(256) })).toEqual(["name"]);
    expect(broken(EventSchema, { ...event, name: "a\nb" })).toEqual(["name"]);
    expect(broken(EventSchema, { ...event, body: "a\0b" })).toEqual(["body"]);
    expect(broken(EventSchema, { ...event, severity: undeclared })).toEqual(["severity"]);
    expect(broken(MetricSchema, { ...point, value: Number.NaN })).toEqual(["value"]);
    expect(broken(MetricSchema, { ...point, value: Number.NEGATIVE_INFINITY })).toEqual(["value"]);
    expect(broken(ModelSchema, { timestamp: 1n, dimensions: many(65) })).toEqual(["dimensions"]);
  });

  test.each([
    ["a key called name", { name: "x" }, 'dimensions["name"]'],
    ["an empty key", { "": "x" }, 'dimensions[""]'],
    ["an empty value", { source: "" }, 'dimensions["source"]'],
    ["a value of 1025 characters", { source: "x".repeat(1025) }, 'dimensions["source"]'],
    ["a value with NUL", { source: "\0" }, 'dimensions["source"]'],
  ])("refuses %s in its dimensions", (_, refused, path) => {
    expect(broken(ModelSchema, { timestamp: 1n, dimensions: { ok: "x", ...refused } })).toEqual([path]);
  });

  test("does not spoil its request", () => {
    expect(broken(PutEventsRequestSchema, { events: [{ severity: undeclared }] })).toEqual([]);
  });
});

describe("a query", () => {
  test("has its time range in order, and open ends", () => {
    expect(broken(TimeRangeSchema, { start: 1n, end: 2n })).toEqual([]);
    expect(broken(TimeRangeSchema, { start: 1n })).toEqual([]);
    expect(broken(TimeRangeSchema, { end: 0n })).toEqual([]);
    expect(broken(EventQuerySchema, { timeRange: { start: 2n, end: 2n } })).toEqual(["time_range"]);
  });

  test("has a page of no negative size", () => {
    expect(broken(PageInputSchema, { limit: 0 })).toEqual([]);
    expect(broken(PageInputSchema, { limit: 1_000_000 })).toEqual([]);
    expect(broken(PageInputSchema, { limit: -1 })).toEqual(["limit"]);
  });

  test("has declared numbers in its enums", () => {
    expect(broken(PageInputSchema, { direction: undeclared })).toEqual(["direction"]);
    expect(broken(FilterSchema, { field: "name", operation: undeclared })).toEqual(["operation"]);
    expect(broken(EventQuerySchema, { severities: [Severity.ERROR, undeclared] })).toEqual(["severities[1]"]);
    expect(broken(EventQuerySchema, { activeCriteria: undeclared })).toEqual(["active_criteria"]);
  });

  test("has exactly one member in a clause", () => {
    expect(broken(EventQuerySchema, { clause: {} })).toEqual(["clause"]);
    expect(broken(ClauseSchema, { filter: { field: "a", operation: 1 }, withIds: { ids: [] } })).toEqual([
      expect.stringMatching(/^only one of .* can be set/),
    ]);
    expect(broken(TriggerClauseSchema, {})).toEqual(["kind"]);
    expect(broken(TriggerValueSchema, {})).toEqual(["kind"]);
  });
});

describe("a resource", () => {
  test("has short names without control characters", () => {
    expect(broken(EntityFieldSchema, { name: "é".repeat(255) })).toEqual([]);
    expect(broken(EntityFieldSchema, { name: "é".repeat(256) })).toEqual(["name"]);
    expect(broken(EntityFieldSchema, { name: "a\u0085b" })).toEqual(["name"]);
  });

  test("has descriptions up to 4 KiB and up to 100 tags of 255 characters", () => {
    expect(broken(EntityFieldSchema, { description: "x".repeat(4096), tags: Array(100).fill("t") })).toEqual([]);
    expect(broken(EntityFieldSchema, { description: `${"x".repeat(4095)}é` })).toEqual(["description"]);
    expect(broken(EntityFieldSchema, { tags: Array(101).fill("t") })).toEqual(["tags"]);
    expect(broken(EntityFieldSchema, { tags: ["t", "", "x".repeat(256)] })).toEqual(["tags[1]", "tags[2]"]);
  });

  test("has templates up to 64 KiB", () => {
    expect(broken(RuleSchema, { message: "x".repeat(65_536) })).toEqual([]);
    expect(broken(RuleSchema, { message: "x".repeat(65_537) })).toEqual(["message"]);
  });

  test("breaks no rule by what it leaves out", () => {
    expect(broken(EntityFieldSchema, {})).toEqual([]);
    expect(broken(RuleSchema, {})).toEqual([]);
    expect(broken(UserGroupSchema, {})).toEqual([]);
  });
});
