import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { type Clause, ClauseSchema, type Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { TriggerMatchersSchema } from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import { SearchEntitiesRequestSchema } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { GroupEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { EventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { brokenRules } from "../../src/rpc/constraint-rules.ts";

const filter = (operation: number): Clause =>
  create(ClauseSchema, { filter: { field: "a", operation: operation as Operation } });
const search = (clause: Clause) => create(SearchEntitiesRequestSchema, { searchInput: { query: { clause } } });
const brokenIn = (clause: Clause) => brokenRules(SearchEntitiesRequestSchema, search(clause));

describe("a rule that is broken", () => {
  test("is told with its JSON path and in words that read on after it", () => {
    const event = create(EventSchema, {
      name: "a\nb",
      dimensions: { name: "x" },
      severity: 9 as Severity,
      summary: "\0",
    });
    expect(brokenRules(EventSchema, event).map(({ path, rule }) => `${path} ${rule}`)).toEqual([
      "timestamp is required",
      "name must not contain control characters",
      'dimensions["name"] must not be name',
      "summary must not contain NUL",
      expect.stringMatching(/^severity must be one of SEVERITY_DEFAULT \(0\), .*SEVERITY_CRITICAL \(5\)$/),
    ]);
    expect(brokenRules(EventSchema, create(EventSchema, { timestamp: 1n }))).toEqual([
      { path: "name", rule: "must not be empty", id: "FIELD_RULE_STRING_MIN_LEN" },
      { path: "dimensions", rule: "must have at least 1 entry", id: "FIELD_RULE_MAP_MIN_PAIRS" },
    ]);
    expect(brokenRules(TriggerMatchersSchema, create(TriggerMatchersSchema))).toEqual([
      { path: "matchers", rule: "must not be empty", id: "FIELD_RULE_REPEATED_MIN_ITEMS" },
    ]);
    expect(brokenRules(GroupEventsRequestSchema, create(GroupEventsRequestSchema, { labels: ["a", "a"] }))).toEqual([
      { path: "labels", rule: "must not contain an item twice", id: "FIELD_RULE_REPEATED_UNIQUE" },
    ]);
  });

  test("about a clause without a member names the members, by their JSON names", () => {
    expect(brokenIn(create(ClauseSchema))).toEqual([
      {
        path: "search_input.query.clause",
        rule: "must hold exactly one of and, or, not, filter, in, range, withIds",
        id: "FIELD_RULE_MESSAGE_ONEOF",
      },
    ]);
  });

  test("about a clause with two members too, also when another clause holds it", () => {
    const two = create(ClauseSchema, { filter: { field: "a", operation: 1 }, withIds: { ids: ["x"] } });
    const rule = "must hold exactly one of and, or, not, filter, in, range, withIds";
    expect(brokenIn(two)).toEqual([{ path: "search_input.query.clause", rule, id: "FIELD_RULE_MESSAGE_ONEOF" }]);
    expect(brokenIn(create(ClauseSchema, { allOf: { clauses: [filter(1), two] } }))).toEqual([
      { path: "search_input.query.clause.and.clauses[1]", rule, id: "FIELD_RULE_MESSAGE_ONEOF" },
    ]);
  });

  test("is found within clauses within clauses, once", () => {
    const not = (clause: Clause) => create(ClauseSchema, { noneOf: { clause } });
    const and = (...clauses: Clause[]) => create(ClauseSchema, { allOf: { clauses } });
    expect(brokenIn(not(create(ClauseSchema))).map(({ path }) => path)).toEqual([
      "search_input.query.clause.not.clause",
    ]);
    expect(brokenIn(and(filter(1), filter(99), not(filter(98)))).map(({ path }) => path)).toEqual([
      "search_input.query.clause.and.clauses[1].filter.operation",
      "search_input.query.clause.and.clauses[2].not.clause.filter.operation",
    ]);
    expect(brokenIn(and(filter(1), not(filter(2))))).toEqual([]);
  });
});
