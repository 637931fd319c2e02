import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { batch, json_bytes_max, text_bytes_max, tree, values_max } from "#gen/belfry/limits/v1/limits_pb.ts";
import { type FieldRules, field as fieldRules, type StringRules } from "#gen/buf/validate/validate_pb.ts";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";
import { messageBoundsOf } from "../../src/wire/message-limits.ts";
import { allMethods } from "../support/calls.ts";

/** The texts, lists, maps and JSON values that a request may hold, each by the way there, that nothing bounds. */
function unbounded(desc: DescMessage, answer = false): string[] {
  const found: string[] = [];
  const seen = new Set<DescMessage>();
  walk(desc);
  return found;

  function walk(message: DescMessage) {
    if (seen.has(message)) return;
    seen.add(message);
    for (const field of message.fields) {
      const { message: below } = field;
      // The service makes them; what a request holds of them is dropped.
      if (!answer && getOption(field, field_behavior).includes(FieldBehavior.OUTPUT_ONLY)) continue;
      for (const part of unboundedParts(field)) found.push(`${message.typeName}.${field.name}${part}`);
      // What lies in a type of google.protobuf is bounded by the field that holds it.
      if (below !== undefined && !below.typeName.startsWith("google.protobuf.")) walk(below);
    }
  }
}

/** Types of google.protobuf that hold any number of values, or a text of any length. */
const open = ["Struct", "Value", "ListValue", "FieldMask", "Any"].map((name) => `google.protobuf.${name}`);

/** Which parts of a field nothing bounds: the number of its elements, texts in it. */
function unboundedParts(field: DescField): string[] {
  const rules = hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
  const { type } = rules ?? {};
  const parts: string[] = [];
  if (!isCounted(field)) parts.push(", its number");
  if (field.fieldKind === "list") {
    const items = type?.case === "repeated" ? type.value.items : undefined;
    if (isText(field.scalar) && !isBoundedText(items)) parts.push(", its items");
  } else if (field.fieldKind === "map") {
    const { keys, values } = type?.case === "map" ? type.value : {};
    if (isText(field.mapKey) && !isBoundedText(keys)) parts.push(", its keys");
    if (isText(field.scalar) && !isBoundedText(values)) parts.push(", its values");
  } else if (isText(field.scalar) || isTextWrapper(field.message)) {
    if (!isBoundedText(rules)) parts.push(", its length");
  }
  const { message } = field;
  if (message !== undefined && open.includes(message.typeName)) {
    if (getOption(field, text_bytes_max) === 0 && getOption(field, json_bytes_max) === 0) parts.push(", its bytes");
  }
  return parts;
}

const isText = (scalar: ScalarType | undefined) => scalar === ScalarType.STRING || scalar === ScalarType.BYTES;
const isTextWrapper = (message: DescMessage | undefined) =>
  message !== undefined && isWrapperDesc(message) && isText(message.fields[0]?.scalar);

function isBoundedText(rules: FieldRules | undefined): boolean {
  if (rules?.type.case === "bytes") return Object.hasOwn(rules.type.value, "maxLen");
  if (rules?.type.case !== "string") return false;
  const { value } = rules.type;
  const names: (keyof StringRules)[] = ["maxLen", "maxBytes", "len", "const"];
  return value.in.length > 0 || names.some((name) => Object.hasOwn(value, name));
}

function isCounted(field: DescField): boolean {
  const { message: below, fieldKind } = field;
  if (below !== undefined && open.includes(below.typeName) && getOption(field, values_max) === 0) return false;
  if (fieldKind !== "list" && fieldKind !== "map") return true;
  const bounds = messageBoundsOf(field.parent).fields.find((each) => each.field === field);
  if (bounds?.max !== Number.POSITIVE_INFINITY) return true;
  return getOption(field, batch) || (below !== undefined && hasOption(below, tree));
}

describe("every text, list, map and JSON value of a request has a bound in the proto files", () => {
  test.each(allMethods.map((method) => ({ rpc: `${method.parent.name}/${method.name}`, method })))(
    "of $rpc",
    ({ method }) => {
      expect(unbounded(method.input)).toEqual([]);
    },
  );

  test("one without a bound is found", () => {
    const search = allMethods.find(({ name }) => name === "SearchEvents");
    expect(unbounded(search?.output as DescMessage, true)).toEqual(
      expect.arrayContaining([
        "belfry.events.v1.Event.id, its length",
        "belfry.events.v1.SearchEventsResponse.results, its number",
      ]),
    );
    const query = allMethods.find(({ name }) => name === "GetCustomProperties" || name === "GetEvent");
    expect(unbounded(query?.output as DescMessage, true).join()).toMatch(/, its bytes/);
  });
});
