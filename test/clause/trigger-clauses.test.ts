import { readFileSync } from "node:fs";
import { fromJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { TriggerClauseSchema, TriggerValueSchema } from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import { checkTrigger, compileTrigger } from "../../src/clause/trigger.ts";

const page = readFileSync(new URL("../../docs/trigger-clauses.md", import.meta.url), "utf8");
const rows = [...page.matchAll(/^\| `(\w+)` \| `(\{.*?\})` \| (.*) \|$/gm)].map(
  ([, name = "", shape = "", meaning = ""]) => ({
    name,
    shape,
    meaning,
  }),
);
const noFields = { field: () => undefined, idsOf: () => [] };
const compared = { equals: { field: "a", value: { stringVal: "b" } } };

describe("docs/trigger-clauses.md", () => {
  test("has every clause, and every kind of value", () => {
    expect(rows.map(({ name }) => name)).toEqual(TriggerClauseSchema.fields.map(({ jsonName }) => jsonName));
    for (const { jsonName } of TriggerValueSchema.fields) expect(page).toContain(`"${jsonName}": `);
  });

  test.each(rows)("$name has the shape that stands there", ({ name, shape, meaning }) => {
    const members = [...shape.matchAll(/"(\w+)"/g)].map(([, member]) => member);
    const field = TriggerClauseSchema.fields.find(({ jsonName }) => jsonName === name);
    expect(field?.message?.fields.map(({ jsonName }) => jsonName)).toEqual(members);
    const value = field?.message?.typeName.endsWith("TriggerText") ? "b" : { boolVal: true };
    const sample = { clauses: [compared], clause: compared, field: "a", value, values: [value], matchers: ["a=b"] };
    const json = {
      [name]: Object.fromEntries(members.map((member) => [member, sample[member as keyof typeof sample]])),
    };
    const check = () => checkTrigger(fromJson(TriggerClauseSchema, json as never), "clause", noFields);
    if (meaning.includes("no `boolVal`")) expect(check).toThrow("must hold stringVal or numberVal");
    else expect(check).not.toThrow();
  });

  test("its example is taken", () => {
    const [, json = ""] = /```json\n(.*?)```/s.exec(page) ?? [];
    const compiled = compileTrigger(fromJson(TriggerClauseSchema, JSON.parse(json)), "clause", noFields);
    expect([...compiled.fields]).toEqual(["severity", "summary", "entity.dimensions.site"]);
  });
});
