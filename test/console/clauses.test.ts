import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { TriggerClauseSchema } from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import { clauseOfDraft, conditionCount, draftOf, type Places } from "../../console/clause/draft.ts";
import { searchClauses } from "../../console/clause/search-clause.ts";
import { triggerClauses } from "../../console/clause/trigger-clause.ts";

const severity = { field: "severity", value: { stringVal: "SEVERITY_ERROR" } };
const name = { field: "name", value: "disk" };
const nested: JsonValue = {
  and: {
    clauses: [
      { greaterAndEquals: severity },
      { or: { clauses: [{ contains: name }, { startsWith: name }] } },
      { not: { clause: { or: { clauses: [{ endsWith: name }, { equals: severity }] } } } },
    ],
  },
};

const ofTriggers: Record<string, JsonValue> = {
  equals: { equals: severity },
  "equals a number": { equals: { field: "count", value: { numberVal: 2.5 } } },
  "equals a boolean": { equals: { field: "acknowledged", value: { boolVal: false } } },
  greaterAndEquals: { greaterAndEquals: severity },
  lessAndEquals: { lessAndEquals: severity },
  in: { in: { field: "name", values: [{ stringVal: "a" }, { stringVal: "b" }] } },
  contains: { contains: name },
  startsWith: { startsWith: name },
  endsWith: { endsWith: name },
  "not equals": { not: { clause: { equals: severity } } },
  "not contains": { not: { clause: { contains: name } } },
  "not startsWith": { not: { clause: { startsWith: name } } },
  "not and": { not: { clause: { and: { clauses: [{ contains: name }, { equals: severity }] } } } },
  "groups within groups": nested,
};

describe("a trigger's clause that was read and not edited", () => {
  test.each(Object.entries(ofTriggers))("stays what it is: %s", (_, json) => {
    const clause = fromJson(TriggerClauseSchema, json);
    const draft = draftOf(triggerClauses, clause);
    expect(toJson(TriggerClauseSchema, clauseOfDraft(triggerClauses, draft) ?? clause)).toEqual(json);
    expect(JSON.stringify(draft)).not.toContain('"other"');
  });

  test.each<[string, JsonValue]>([
    ["values with commas", { in: { field: "name", values: [{ stringVal: "a, b" }] } }],
    ["values of several kinds", { in: { field: "name", values: [{ stringVal: "4" }, { numberVal: 4 }] } }],
    ["no values", { in: { field: "name" } }],
  ])("is kept as JSON where the editor has no form for it: %s", (_, json) => {
    const draft = draftOf(triggerClauses, fromJson(TriggerClauseSchema, json));
    expect(draft.parts).toMatchObject([{ kind: "other" }]);
    const again = clauseOfDraft(triggerClauses, draft);
    expect(again && toJson(TriggerClauseSchema, again)).toEqual(json);
  });
});

describe("a search's clause that was read and not edited", () => {
  const filter = (operation: string, value: JsonValue): JsonValue => ({ filter: { field: "name", operation, value } });
  test.each<JsonValue>([
    filter("OP_EQUALS", "a"),
    filter("OP_NOT_EQUALS", 4),
    filter("OP_REGEX", "^a"),
    filter("OP_EXISTS", true),
    filter("OP_EXISTS", false),
    filter("OP_EXISTS", null),
    filter("OP_IN", ["a", "b"]),
    { in: { field: "name", values: ["a", "b"] } },
    { in: { field: "name", values: [1, 2] } },
    { in: { field: "name", values: ["a,b", "c"] } },
    { range: { path: "count", gte: 1, lt: 5 } },
    { withIds: { ids: ["a"] } },
    { not: { clause: filter("OP_EQUALS", "a") } },
    { or: { clauses: [filter("OP_TEXT", "a"), { range: { path: "count", gte: 1 } }] } },
  ])("stays what it is: %j", (json) => {
    const clause = fromJson(ClauseSchema, json);
    const again = clauseOfDraft(searchClauses, draftOf(searchClauses, clause));
    expect(again && toJson(ClauseSchema, again)).toEqual(toJson(ClauseSchema, clause));
  });
});

test("each condition has the place that errors of the API name", () => {
  const places: Places = new Map();
  const draft = draftOf(triggerClauses, fromJson(TriggerClauseSchema, nested));
  clauseOfDraft(triggerClauses, draft, places);
  expect([...places.keys()]).toEqual([
    ".and.clauses[0]",
    ".and.clauses[1].or.clauses[0]",
    ".and.clauses[1].or.clauses[1]",
    ".and.clauses[2].not.clause.or.clauses[0]",
    ".and.clauses[2].not.clause.or.clauses[1]",
  ]);
  expect(conditionCount(triggerClauses, fromJson(TriggerClauseSchema, nested))).toBe(5);
});
