import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ClauseSchema, FilterSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { UpdateEntityFieldRequestSchema } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { ScheduleSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { CustomPropertyUpdaterSchema } from "#gen/belfry/properties/v1/custom_property_updater_pb.ts";
import { EventSchema, ModelSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { brokenByteBounds, brokenCountBound } from "../../src/rpc/request-bounds.ts";

const many = <T>(count: number, value: T): T[] => Array<T>(count).fill(value);

describe("texts in JSON values", () => {
  const filter = (value: JsonValue) => brokenByteBounds(FilterSchema, fromJson(FilterSchema, { value }));
  const broken = [{ path: "value", rule: "must hold texts of at most 65536 bytes", id: FieldRule.SIZE }];

  test("have at most this many bytes, however few characters that are, and no NUL", () => {
    expect([...filter("*".repeat(65_536)), ...filter(5), ...filter("é".repeat(32_768))]).toEqual([]);
    expect(filter("*".repeat(65_537))).toEqual(broken);
    expect(filter("é".repeat(32_769))).toEqual(broken);
    expect(filter(["a", { b: "*".repeat(65_537) }])).toEqual(broken);
    expect(filter({ ["k".repeat(65_537)]: 1 })).toEqual(broken);
    expect(filter("1\0")).toEqual([{ path: "value", rule: "must not contain NUL", id: FieldRule.STRING_NOT_CONTAINS }]);
  });

  test("of a field of cron are left to the maintenance service, but for NUL", () => {
    const recurrence = (year: string) =>
      brokenByteBounds(ScheduleSchema, fromJson(ScheduleSchema, { recurrence: { year } }));
    expect(recurrence("9".repeat(1025))).toEqual([]);
    expect(recurrence("1\0")).toEqual([
      { path: "recurrence.year", rule: "must not contain NUL", id: FieldRule.STRING_NOT_CONTAINS },
    ]);
  });

  test("are found wherever they lie, by their path", () => {
    const long = "x".repeat(65_537);
    const rule = "must hold texts of at most 65536 bytes";
    const clause: JsonValue = {
      and: { clauses: [{ filter: { value: "a" } }, { not: { clause: { range: { lt: long } } } }] },
    };
    expect(brokenByteBounds(ClauseSchema, fromJson(ClauseSchema, clause))).toEqual([
      { path: "and.clauses[1].not.clause.range.lt", rule, id: FieldRule.SIZE },
    ]);
    expect(brokenByteBounds(ClauseSchema, fromJson(ClauseSchema, { in: { values: ["a", long] } }))).toEqual([
      { path: "in.values", rule, id: FieldRule.SIZE },
    ]);
    const masked = create(UpdateEntityFieldRequestSchema, { updateMask: { paths: ["a", "b".repeat(1025)] } });
    expect(brokenByteBounds(UpdateEntityFieldRequestSchema, masked)).toEqual([
      { path: "updateMask", rule: "must hold texts of at most 1024 bytes", id: FieldRule.SIZE },
    ]);
  });

  test("of metadata have at most 64 KiB together, as JSON", () => {
    const event = (text: string) => create(EventSchema, { metadataFields: { a: text } });
    expect(brokenByteBounds(EventSchema, event("x".repeat(65_536 - 8)))).toEqual([]);
    expect(brokenByteBounds(EventSchema, event("x".repeat(65_536 - 7)))).toEqual([
      { path: "metadataFields", rule: "must take at most 65536 bytes as JSON", id: FieldRule.SIZE },
    ]);
  });
});

describe("what an item holds too much of is found before anything else of it is looked at", () => {
  const updater = (clause: JsonValue) =>
    fromJson(CustomPropertyUpdaterSchema, { entity_input: { clause } } as unknown as JsonValue);
  const leaf = { filter: { field: "name", value: "a" } };
  const nested = (depth: number): JsonValue => (depth === 1 ? leaf : { not: { clause: nested(depth - 1) } });

  test.each<[string, ReturnType<typeof updater>, string | undefined]>([
    ["as many clauses as may be", updater({ and: { clauses: many(999, leaf) } }), undefined],
    ["more clauses", updater({ and: { clauses: many(1000, leaf) } }), "must not be more than the 1000th clause"],
    ["clauses as deep as may be", updater(nested(32)), undefined],
    ["deeper ones", updater(nested(33)), "must not lie deeper than 32 clauses"],
    ["as many values as may be", updater({ filter: { value: many(10_000, 0) } }), undefined],
    ["more values", updater({ filter: { value: many(10_001, 0) } }), "must hold at most 10001 values"],
    ["values within each other", updater({ in: { values: [many(100, [])] } }), "must hold at most 100 values"],
    ["more elements", updater({ in: { values: many(10_001, 0) } }), "must have at most 10000 items"],
  ])("%s", (_, item, rule) => {
    expect(brokenCountBound(CustomPropertyUpdaterSchema, item)?.rule).toBe(rule);
  });

  test("entries of a map, and values of an object", () => {
    const dimensions = Object.fromEntries(many(65, "").map((_, i) => [`d${i}`, "x"]));
    expect(brokenCountBound(ModelSchema, create(ModelSchema, { dimensions }))).toEqual({
      path: "dimensions",
      rule: "must have at most 64 entries",
    });
    const metadata = (count: number) => create(ModelSchema, { metadataFields: { a: many(count, 0) } });
    expect(brokenCountBound(ModelSchema, metadata(32_767))).toBeUndefined();
    expect(brokenCountBound(ModelSchema, metadata(32_768))).toEqual({
      path: "metadataFields",
      rule: "must hold at most 32768 values",
    });
  });
});
