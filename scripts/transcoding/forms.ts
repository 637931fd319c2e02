import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";

/** A JSON Schema, as OpenAPI 3.1 embeds it. */
export type JsonSchema = { [key: string]: unknown };

/**
 * Where a value stands: in an answer, which has one form; in a request, which may have several; or in a request that changes
 * the members it holds and leaves the others.
 */
export type Side = "answer" | "request" | "update";

/** The values of a scalar field. */
export function scalar(type: ScalarType, side: Side): JsonSchema {
  switch (type) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { type: "number", format: type === ScalarType.DOUBLE ? "double" : "float" };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: "integer", minimum: 0, maximum: 2 ** 32 - 1 };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: "integer", format: "int32" };
    default: {
      const unsigned = type === ScalarType.UINT64 || type === ScalarType.FIXED64;
      const text = { format: unsigned ? "uint64" : "int64", pattern: unsigned ? "^[0-9]+$" : "^-?[0-9]+$" };
      return { type: side === "answer" ? "string" : ["string", "integer"], ...text };
    }
  }
}

/** A number of seconds, or a duration, in requests. */
export const duration: JsonSchema = {
  type: ["string", "integer"],
  pattern: "^(?:-?[0-9]+|(?:[0-9]{1,15}(?:ms|s|m|h|d))+)$",
};

/** The values of a message that has a JSON form of its own; undefined for all others. */
export function wellKnown(desc: DescMessage, side: Side): JsonSchema | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return { type: "string", format: "date-time" };
    case "google.protobuf.Duration":
      return { type: "string", pattern: "^-?[0-9]+(\\.[0-9]{1,9})?s$" };
    case "google.protobuf.FieldMask":
      return { type: "string", description: "Field paths, separated by commas." };
    case "google.protobuf.Struct":
      return { type: "object", additionalProperties: true };
    case "google.protobuf.Value":
      return {};
    case "google.protobuf.ListValue":
      return { type: "array", items: {} };
    case "google.protobuf.Any":
      return { type: "object", properties: { "@type": { type: "string" } }, additionalProperties: true };
    case "google.protobuf.Empty":
      return { type: "object" };
  }
  const value = desc.fields[0];
  return isWrapperDesc(desc) && value?.fieldKind === "scalar" ? scalar(value.scalar, side) : undefined;
}

/** The same values, or null. */
export function nullable(schema: JsonSchema): JsonSchema {
  if ("$ref" in schema) return { anyOf: [schema, { type: "null" }] };
  if (schema.type === undefined || schema.type === "null") return schema;
  return { ...schema, type: [schema.type, "null"].flat() };
}
