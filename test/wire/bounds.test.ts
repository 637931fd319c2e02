import { type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { batch, tree, values_max } from "#gen/belfry/wire/v1/bounds_pb.ts";
import { boundsOf } from "../../src/wire/bounds.ts";
import { allMethods } from "../support/calls.ts";

/** The lists and maps that a request may hold, each by the way there, that nothing bounds. */
function unbounded(desc: DescMessage): string[] {
  const found: string[] = [];
  const seen = new Set<DescMessage>();
  walk(desc);
  return found;

  function walk(message: DescMessage) {
    if (seen.has(message)) return;
    seen.add(message);
    for (const field of message.fields) {
      const { message: below } = field;
      if (!isBounded(field)) found.push(`${message.typeName}.${field.name}`);
      // What lies in a type of google.protobuf is bounded by the field that holds it.
      if (below !== undefined && !below.typeName.startsWith("google.protobuf.")) walk(below);
    }
  }
}

/** Types of google.protobuf that hold any number of values. */
const open = ["Struct", "Value", "ListValue", "FieldMask", "Any"].map((name) => `google.protobuf.${name}`);

function isBounded(field: DescField): boolean {
  const { message: below, fieldKind } = field;
  if (below !== undefined && open.includes(below.typeName) && getOption(field, values_max) === 0) return false;
  if (fieldKind !== "list" && fieldKind !== "map") return true;
  const bounds = boundsOf(field.parent).fields.find((each) => each.field === field);
  if (bounds?.max !== Number.POSITIVE_INFINITY) return true;
  return getOption(field, batch) || (below !== undefined && hasOption(below, tree));
}

test.each(allMethods.map((method) => ({ rpc: `${method.parent.name}/${method.name}`, method })))(
  "no list and no map in a request of $rpc is without a bound",
  ({ method }) => {
    expect(unbounded(method.input)).toEqual([]);
  },
);

test("one without a bound is found", () => {
  const search = allMethods.find(({ name }) => name === "SearchEvents");
  expect(unbounded(search?.output as DescMessage)).not.toEqual([]);
});
