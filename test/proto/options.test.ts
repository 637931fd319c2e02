import { type DescField, getOption } from "@bufbuild/protobuf";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import { describe, expect, test } from "vitest";
import { Permission, permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { update_mask } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { Ignore, field as rules } from "#gen/buf/validate/validate_pb.ts";
import { http } from "#gen/google/api/annotations_pb.ts";
import { field_behavior as behavior, FieldBehavior } from "#gen/google/api/field_behavior_pb.ts";
import { messages, messagesBelow, methods, nameOf, routesOf } from "./schema.ts";

test("the schema was read", () => {
  expect(methods.length).toBeGreaterThan(80);
});

describe.each(methods.map((method) => ({ rpc: nameOf(method), method })))("$rpc", ({ method }) => {
  test("names the permission that its caller needs", () => {
    expect(Object.values(Permission)).toContain(getOption(method, permission));
    expect(getOption(method, permission)).not.toBe(Permission.UNSPECIFIED);
  });

  test("has a request and a response of its own", () => {
    expect([method.input.name, method.output.name]).toEqual([`${method.name}Request`, `${method.name}Response`]);
  });

  test("has routes, unless its client streams", () => {
    const routes = routesOf(method);
    const streams = method.methodKind === "client_streaming";
    expect(routes.length > 0).toBe(!streams);
    for (const route of routes) expect(route).toMatch(/^(GET|POST|PUT|PATCH|DELETE) \/v1\//);
  });

  test("has an update mask when it changes a part of a resource, and only then", () => {
    const name = getOption(method, update_mask);
    const mask = method.input.fields.find((field) => field.message?.typeName === "google.protobuf.FieldMask");
    expect(name).toBe(mask?.name ?? "");
    expect(name !== "").toBe(method.name.startsWith("Update"));
  });

  test("says whether it only reads", () => {
    const reads = /^(Get|List|Search|Count|BatchGet|Watch|Preview|Explain|Group)/.test(method.name);
    expect(method.idempotency === 1).toBe(reads);
  });

  test("bare bodies name fields that are messages", () => {
    const { body, responseBody } = getOption(method, http);
    const named = [
      [body, method.input],
      [responseBody, method.output],
    ] as const;
    for (const [name, message] of named)
      if (name !== "" && name !== "*")
        expect(message.fields.find((field) => field.name === name)?.message).toBeDefined();
  });
});

/** Every message that a request may hold; what stands only below members that are dropped from requests is not among them. */
function belowRequests() {
  return new Set(methods.flatMap((method) => [...messagesBelow(method.input, (field) => !isAnswerOnly(field))]));
}

/** Whether a field refuses numbers that its enum does not declare, itself or in its elements. */
function refusesUndeclared(field: DescField) {
  const { type } = getOption(field, rules);
  if (type.case === "enum") return type.value.definedOnly;
  if (type.case !== "repeated") return false;
  const items = type.value.items?.type;
  return items?.case === "enum" && items.value.definedOnly;
}

test("every enum of a request refuses numbers that it does not declare", () => {
  const open: string[] = [];
  for (const message of belowRequests())
    for (const field of message.fields)
      if (field.enum !== undefined && !field.enum.typeName.startsWith("google.") && !refusesUndeclared(field))
        if (!isAnswerOnly(field)) open.push(String(field));
  expect(open).toEqual([]);
});

/** OUTPUT_ONLY members are dropped from requests before anything looks at them. */
function isAnswerOnly(field: DescField) {
  return getOption(field, behavior).includes(FieldBehavior.OUTPUT_ONLY);
}

test("the receiver's items are checked one by one, not with their request", () => {
  const receiver = methods.filter((method) => method.parent.name === "DataReceiverService");
  const items = receiver.flatMap((method) => method.input.fields.filter((field) => field.message !== undefined));
  expect(items).toHaveLength(10);
  for (const field of items) expect(getOption(field, rules).ignore, String(field)).toBe(Ignore.ALWAYS);
});

test("names in JSON are lowerCamelCase, but for those that the API has always spelled otherwise", () => {
  const others = messages
    .flatMap((message) => message.fields)
    .filter((field) => field.jsonName !== protoCamelCase(field.name))
    .map((field) => `${field.parent?.name}.${field.jsonName}`);
  expect(others).toMatchInlineSnapshot(`
    [
      "Clause.and",
      "Clause.or",
      "Clause.not",
      "Clause.in",
      "TriggerClause.and",
      "TriggerClause.or",
      "TriggerClause.not",
      "TriggerClause.in",
      "EntityField.default",
      "EventField.default",
      "MetricEntry.default",
      "BatchGetMetricEntriesRequest.name",
      "EntitySort.field_kind",
      "EntitySearch.page_input",
      "EntitySearch.group_by",
      "SearchEntitiesRequest.search_input",
      "ListDefaultFieldsRequest.searchable_only",
      "ListMaintenanceWindowsRequest.page_input",
      "WindowSearch.page_input",
      "SearchMaintenanceWindowsRequest.search_input",
      "SeriesDictionary.default",
      "EntitySelection.with_ids",
      "SetCustomPropertiesResponse.entity_ids",
      "DeleteCustomPropertiesRequest.property_keys",
      "CustomPropertyUpdater.entity_input",
      "ListCustomPropertyUpdatersRequest.page_input",
      "UpdaterPageInfo.has_next",
      "ListCustomPropertyUpdatersResponse.page_info",
    ]
  `);
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
