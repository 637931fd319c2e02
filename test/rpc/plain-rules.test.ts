import {
  create,
  createFileRegistry,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { file_belfry_credentials_v1_credential_service } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { file_belfry_entities_v1_entity_service } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { file_belfry_events_v1_query_service } from "#gen/belfry/events/v1/query_service_pb.ts";
import { file_belfry_notifications_v1_destination } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { EventSchema, file_belfry_receiver_v1_receiver } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { brokenRules } from "../../src/rpc/constraint-rules.ts";
import { plainRules } from "../../src/rpc/plain-rules.ts";
import { cases, seed } from "../support/cases.ts";

const texts = [
  "",
  "a",
  "name",
  "a\0",
  "a\nb",
  "😀",
  "x".repeat(255),
  "x".repeat(256),
  "😀".repeat(128),
  "é".repeat(255),
];
const text = fc.constantFrom(...texts, "x".repeat(1024), "x".repeat(1025), "x".repeat(65_537));
const numbers = [0, 1, -1, 5, 6, 100, 1000, 1001, 2 ** 31 - 1];

function scalar(type: ScalarType): fc.Arbitrary<unknown> {
  switch (type) {
    case ScalarType.STRING:
      return text;
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.BYTES:
      return fc.constantFrom(new Uint8Array(), new Uint8Array(9));
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return fc.constantFrom(...numbers.slice(0, 6), Number.NaN, Number.POSITIVE_INFINITY);
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return fc.constantFrom(0n, 1n, 253402300799999n, 253402300800000n);
    default:
      return fc.constantFrom(...numbers.filter((n) => n >= 0 || type === ScalarType.INT32));
  }
}

/** Any value of a field, those of lists and maps, to a depth. */
function element(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.message !== undefined) return message(field.message, depth - 1);
  if (field.enum !== undefined) return fc.constantFrom(0, 1, 2, 99);
  return scalar(field.scalar as ScalarType);
}

function value(field: DescField, depth: number): fc.Arbitrary<unknown> {
  const one = element(field, depth);
  if (field.fieldKind === "list") return fc.array(one, { maxLength: 3 });
  if (field.fieldKind !== "map") return one;
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, "x"]));
  return field.message === undefined
    ? fc.oneof(
        { weight: 9, arbitrary: fc.dictionary(text, one, { maxKeys: 3 }) },
        { weight: 1, arbitrary: fc.constant(many) },
      )
    : fc.dictionary(text, one, { maxKeys: 2 });
}

function message(desc: DescMessage, depth: number): fc.Arbitrary<unknown> {
  const own =
    desc.typeName.startsWith("google.") || depth < 0 ? [] : desc.fields.filter(({ oneof }) => oneof === undefined);
  const members = Object.fromEntries(own.map((field) => [field.localName, value(field, depth)]));
  return fc.record(members, { requiredKeys: [] }).map((init) => create(desc, init as never));
}

const files = [
  file_belfry_receiver_v1_receiver,
  file_belfry_events_v1_query_service,
  file_belfry_entities_v1_entity_service,
  file_belfry_credentials_v1_credential_service,
  file_belfry_notifications_v1_destination,
];
const messages = files.flatMap((file) => [...nestedTypes(file)].filter((type) => type.kind === "message"));

describe("the plain rules of a message", () => {
  test("say yes to nothing that breaks one of protovalidate's", () => {
    const found = { yes: 0, no: 0, plain: 0 };
    for (const desc of messages) {
      const keeps = plainRules(desc);
      if (keeps === undefined) continue;
      found.plain += 1;
      const property = fc.property(message(desc, 2), (held) => {
        const isPlain = keeps(held as never);
        found[isPlain ? "yes" : "no"] += 1;
        if (isPlain) expect(brokenRules(desc, held as Message)).toEqual([]);
      });
      fc.assert(property, { numRuns: cases(200), seed });
    }
    expect(found.plain).toBeGreaterThan(40);
    expect(found.yes).toBeGreaterThan(500);
    expect(found.no).toBeGreaterThan(500);
  });

  test("are left to protovalidate where a message holds its own type", () => {
    const node = { name: "Node", field: [{ name: "below", number: 1, type: 11, label: 1, typeName: ".Node" }] };
    const file = create(FileDescriptorProtoSchema, { name: "node.proto", syntax: "proto3", messageType: [node] });
    const desc = createFileRegistry(file, () => undefined).getMessage("Node") as DescMessage;
    expect(plainRules(desc)).toBeUndefined();
  });

  const event = { timestamp: 1n, name: "a", dimensions: { host: "x" } };
  const dimensions = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "x"]));
  const bounds: [what: string, good: object, bad: object][] = [
    ["a time that is needed", { timestamp: 0n }, { timestamp: undefined }],
    ["the shortest text", { name: "a" }, { name: "" }],
    ["the longest text", { name: "x".repeat(255) }, { name: "x".repeat(256) }],
    ["a pattern", { type: "é" }, { type: "a\tb" }],
    ["what a text may not contain", { summary: "a\nb" }, { summary: "a\0" }],
    ["most bytes", { body: `${"é".repeat(32_767)}xx` }, { body: `${"é".repeat(32_768)}x` }],
    ["a declared number", { severity: 5 }, { severity: 99 }],
    ["the least number", { expiresAt: 0n }, { expiresAt: -1n }],
    ["the greatest number", { expiresAt: 253402300799999n }, { expiresAt: 253402300800000n }],
    ["most entries", { dimensions: dimensions(64) }, { dimensions: dimensions(65) }],
    ["least entries", { dimensions: dimensions(1) }, { dimensions: {} }],
    ["keys", { dimensions: { names: "x" } }, { dimensions: { name: "x" } }],
    ["values", { dimensions: { host: "x".repeat(1024) } }, { dimensions: { host: "x".repeat(1025) } }],
  ];
  test.each(bounds)("of an event know %s", (_, good, bad) => {
    const [yes, no] = [good, bad].map((changed) => create(EventSchema, { ...event, ...changed } as never));
    expect([plainRules(EventSchema)?.(yes as never), brokenRules(EventSchema, yes as never)]).toEqual([true, []]);
    expect(plainRules(EventSchema)?.(no as never)).toBe(false);
    expect(brokenRules(EventSchema, no as never)).toHaveLength(1);
  });
});
