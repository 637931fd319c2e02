import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TriggerClauseSchema } from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import { containsFolded, fieldOf, foldedRow } from "../../src/clause/folded-row.ts";
import { checkTrigger, compileTrigger } from "../../src/clause/trigger.ts";
import { equalityKeys } from "../../src/clause/trigger-needs.ts";
import { unpaced } from "../../src/event-loop.ts";
import { cases, seed } from "../support/cases.ts";
import { type Row, resolver, row } from "./rows.ts";

type Value = { stringVal: string } | { numberVal: number } | { boolVal: boolean };
type Trigger =
  | { and: { clauses: Trigger[] } }
  | { or: { clauses: Trigger[] } }
  | { not: { clause: Trigger } }
  | { equals: { field: string; value: Value } }
  | { greaterAndEquals: { field: string; value: Value } }
  | { lessAndEquals: { field: string; value: Value } }
  | { in: { field: string; values: Value[] } }
  | { contains: { field: string; value: string } }
  | { startsWith: { field: string; value: string } }
  | { endsWith: { field: string; value: string } };

const clauseOf = (trigger: unknown) => fromJson(TriggerClauseSchema, trigger as JsonValue);
const values = resolver();
function compile(trigger: unknown) {
  const { matches, ...compiled } = compileTrigger(clauseOf(trigger), "clause", values);
  return { ...compiled, matches: (each: Row) => matches(foldedRow(each, { values }), unpaced) === true };
}
const keysOf = (field: string, each: Row) => equalityKeys(fieldOf(foldedRow(each, { values }), field)?.elements ?? []);

/** The values of a field, in a list, as its rows have them. */
function valuesOf(field: string, row: Row): unknown[] {
  const [, map, key = ""] = /^(dimensions|metadataFields)\.(.*)$/.exec(field) ?? [];
  const own = (of: object) => (Object.hasOwn(of, key) ? (of as Record<string, unknown>)[key] : undefined);
  const plain: Partial<Record<string, unknown>> = { name: row.name, size: row.size, level: row.level, live: row.live };
  const value = map === "dimensions" ? own(row.dimensions) : map === undefined ? plain[field] : own(row.metadata);
  return Array.isArray(value) ? value : [value];
}

const isNumber = (text: unknown): text is string => typeof text === "string" && /^-?\d+(\.\d+)?$/.test(text);
const levels: Record<string, number> = { low: 1, high: 2 };

/** Less than 0, 0, more than 0; undefined: they do not compare. Of ASCII texts alone. */
function order(field: string, found: unknown, wanted: Value): number | undefined {
  let value: unknown = Object.values(wanted)[0];
  if (field === "level" && typeof value === "string") value = levels[value.toLowerCase()] ?? value;
  if (typeof found === "string" && typeof value === "string") {
    const [a, b] = [found.toLowerCase(), value.toLowerCase()];
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (typeof found === "boolean" || typeof value === "boolean") return found === value ? 0 : undefined;
  const asNumber = (each: unknown) => (typeof each === "number" ? each : isNumber(each) ? Number(each) : undefined);
  const [a, b] = [asNumber(found), asNumber(value)];
  return a === undefined || b === undefined ? undefined : a - b;
}

/** What a trigger means, said once more and plainly. */
function matches(trigger: Trigger, row: Row): boolean {
  if ("and" in trigger) return trigger.and.clauses.every((each) => matches(each, row));
  if ("or" in trigger) return trigger.or.clauses.some((each) => matches(each, row));
  if ("not" in trigger) return !matches(trigger.not.clause, row);
  const [[operation, asked] = ["", { field: "" }]] = Object.entries(trigger);
  const found = valuesOf(asked.field, row);
  const some = (value: Value, holds: (order: number) => boolean) =>
    found.some((each) => {
      const result = order(asked.field, each, value);
      return result !== undefined && holds(result);
    });
  if ("equals" in trigger) return some(trigger.equals.value, (result) => result === 0);
  if ("greaterAndEquals" in trigger) return some(trigger.greaterAndEquals.value, (result) => result >= 0);
  if ("lessAndEquals" in trigger) return some(trigger.lessAndEquals.value, (result) => result <= 0);
  if ("in" in trigger) return trigger.in.values.some((value) => some(value, (result) => result === 0));
  const text = (asked as unknown as { value: string }).value.toLowerCase();
  return found.some((each) => {
    if (typeof each !== "string") return false;
    const lower = each.toLowerCase();
    if (operation === "contains") return lower.includes(text);
    return operation === "startsWith" ? lower.startsWith(text) : lower.endsWith(text);
  });
}

const text = fc.constantFrom("", "a", "A", "aB", "Ab", "b", "5", "5.0", "-1", "LOW", "high");
const number = fc.constantFrom(-1, 0, 1, 2, 5, 5.5);
const scalar = fc.oneof(text, number, fc.boolean());
const value = fc.oneof(
  text.map((stringVal): Value => ({ stringVal })),
  number.map((numberVal): Value => ({ numberVal })),
  fc.boolean().map((boolVal): Value => ({ boolVal })),
);
const ordered = value.filter((each) => !("boolVal" in each));
const field = fc.constantFrom(
  "name",
  "size",
  "level",
  "live",
  "dimensions.a",
  "metadataFields.a",
  "metadataFields.b",
  "none",
);
const { trigger } = fc.letrec<{ trigger: Trigger; leaf: Trigger }>((tie) => ({
  leaf: fc.oneof(
    fc.record({ field, value }).map((equals): Trigger => ({ equals })),
    fc.record({ field, values: fc.array(value, { maxLength: 3 }) }).map((asked): Trigger => ({ in: asked })),
    fc.record({ field, value: ordered }).map((greaterAndEquals): Trigger => ({ greaterAndEquals })),
    fc.record({ field, value: ordered }).map((lessAndEquals): Trigger => ({ lessAndEquals })),
    fc.record({ field, value: text }).map((contains): Trigger => ({ contains })),
    fc.record({ field, value: text }).map((startsWith): Trigger => ({ startsWith })),
    fc.record({ field, value: text }).map((endsWith): Trigger => ({ endsWith })),
  ),
  trigger: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    tie("leaf"),
    fc.array(tie("trigger"), { minLength: 1, maxLength: 3 }).map((clauses): Trigger => ({ and: { clauses } })),
    fc.array(tie("trigger"), { minLength: 1, maxLength: 3 }).map((clauses): Trigger => ({ or: { clauses } })),
    tie("trigger").map((clause): Trigger => ({ not: { clause } })),
  ),
}));
const map = fc.dictionary(fc.constantFrom("a", "b"), fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })));
const someRow = fc
  .record({
    name: fc.option(text),
    size: fc.option(fc.constantFrom(-1, 0, 1, 5)),
    level: fc.option(fc.constantFrom(1, 2)),
    live: fc.option(fc.boolean()),
    dimensions: fc.dictionary(fc.constantFrom("a"), text),
    metadata: map,
  })
  .map((of) => row("x", of));

describe(`for generated triggers (seed ${seed})`, () => {
  test("a predicate is what the trigger says, and a row that matches has what the trigger needs", () => {
    const rows = fc.sample(someRow, { numRuns: 100, seed });
    let [matched, needed] = [0, 0];
    fc.assert(
      fc.property(trigger, (generated) => {
        const compiled = compile(generated);
        const expected = rows.filter((each) => matches(generated, each));
        expect(rows.filter(compiled.matches)).toEqual(expected);
        matched += expected.length;
        const { needs, needles } = compiled;
        const holds = (each: Row) =>
          needles?.some(({ field, text }) => {
            const own = fieldOf(foldedRow(each, { values }), field);
            return own !== undefined && containsFolded(own, text);
          }) ?? true;
        expect(expected.filter(holds)).toEqual(expected);
        if (needs === undefined) return;
        const has = (each: Row) => needs.some(({ field, key }) => keysOf(field, each).includes(key));
        expect(expected.filter(has)).toEqual(expected);
        needed += expected.length;
      }),
      { numRuns: cases(500), seed },
    );
    // Otherwise they say nothing. How many there are is a matter of the seed: 62 have been needed in a quarter of the cases.
    expect(matched).toBeGreaterThan(0);
    expect(needed).toBeGreaterThan(0);
  });

  test("one equality has its key in the rows that it matches, and in no others", () => {
    const rows = fc.sample(someRow, { numRuns: 100, seed });
    fc.assert(
      fc.property(fc.record({ field, value }), (equals) => {
        const { matches, needs } = compile({ equals });
        const found = (each: Row) => needs?.some(({ field, key }) => keysOf(field, each).includes(key));
        expect(rows.map(found)).toEqual(rows.map(matches));
      }),
      { numRuns: cases(300), seed },
    );
  });
});

const equals = (field: string, stringVal: string) => ({ equals: { field, value: { stringVal } } });

test("text compares without regard to case, by each code point; enumerations take their names in any case", () => {
  expect(compile(equals("name", "ΣΊΣΥΦΟΣ")).matches(row("x", { name: "σίσυφοσ" }))).toBe(true);
  expect(compile({ contains: { field: "name", value: "ÄR" } }).matches(row("x", { name: "Bär" }))).toBe(true);
  expect(compile(equals("level", "high")).matches(row("x", { level: 2 }))).toBe(true);
});

test("what a trigger needs: one of an or, the fewest of an and, nothing beside a not", () => {
  const needs = (trigger: unknown) => compile(trigger).needs?.map(({ field, key }) => `${field} ${key}`);
  expect(needs(equals("name", "Down"))).toEqual(["name text down"]);
  expect(needs({ or: { clauses: [equals("name", "a"), equals("level", "LOW")] } })).toEqual([
    "name text a",
    "level reads as 1",
  ]);
  const either = { in: { field: "size", values: [{ numberVal: 1 }, { stringVal: "2" }] } };
  expect(needs(either)).toEqual(["size reads as 1", "size text 2", "size number 2"]);
  expect(
    needs({ and: { clauses: [either, { contains: { field: "name", value: "a" } }, equals("name", "b")] } }),
  ).toEqual(["name text b"]);
  expect(needs({ not: { clause: equals("name", "a") } })).toBeUndefined();
  expect(
    needs({ or: { clauses: [equals("name", "a"), { contains: { field: "name", value: "b" } }] } }),
  ).toBeUndefined();
  expect(needs({ in: { field: "name", values: [] } })).toEqual([]);
  expect(needs(equals("none", "a"))).toEqual([]);
});

test("the fields that a trigger names are reported", () => {
  const nested = { and: { clauses: [{ not: { clause: equals("status", "STATUS_CLOSED") } }, equals("name", "a")] } };
  expect([...compile(nested).fields]).toEqual(["status", "name"]);
});

const noFields = { field: () => undefined };

describe("refused, with its place:", () => {
  const deep = (depth: number): unknown => (depth === 1 ? equals("name", "a") : { not: { clause: deep(depth - 1) } });
  const wide = (count: number) => ({ and: { clauses: Array.from({ length: count }, () => equals("name", "a")) } });
  const oneOf =
    "must hold one of and, or, not, equals, greaterAndEquals, lessAndEquals, in, contains, startsWith, endsWith, matchers";
  test.each([
    [undefined, "clause: must hold at least one comparison"],
    [{}, `clause: ${oneOf}`],
    [{ and: {} }, "clause.and.clauses: must not be empty"],
    [{ or: { clauses: [equals("name", "a"), {}] } }, `clause.or.clauses[1]: ${oneOf}`],
    [{ not: {} }, "clause.not.clause: is required"],
    [{ not: { clause: equals("", "a") } }, "clause.not.clause.equals.field: is required"],
    [{ equals: { field: "name" } }, "clause.equals.value: must hold stringVal, numberVal or boolVal"],
    [
      { greaterAndEquals: { field: "name", value: { boolVal: true } } },
      "clause.greaterAndEquals.value: must hold stringVal or numberVal",
    ],
    [
      { in: { field: "name", values: [{ numberVal: 1 }, {}] } },
      "clause.in.values[1]: must hold stringVal, numberVal or boolVal",
    ],
    [{ contains: { field: "name", value: "a\0" } }, "clause.contains.value: must not contain NUL"],
    [equals("name", "\0"), "clause.equals.value.stringVal: must not contain NUL"],
    [equals("a\0", "a"), "clause.equals.field: must not contain NUL"],
    [
      { lessAndEquals: { field: "size", value: { numberVal: "NaN" } } },
      "clause.lessAndEquals.value.numberVal: must be finite",
    ],
    [deep(33), `clause${".not.clause".repeat(32)}: must not lie deeper than 32 clauses`],
    [wide(1000), "clause.and.clauses[999]: must not be more than the 1000th clause"],
  ])("%j", (trigger, message) => {
    const refusal = (() => {
      try {
        checkTrigger(trigger === undefined ? undefined : clauseOf(trigger), "clause", noFields);
      } catch (error) {
        return error;
      }
    })();
    expect(refusal).toBeInstanceOf(ConnectError);
    expect((refusal as ConnectError).rawMessage).toBe(message);
  });

  test("not at the bounds", () => {
    checkTrigger(clauseOf(deep(32)), "clause", noFields);
    checkTrigger(clauseOf(wide(999)), "clause", noFields);
  });
});
