import { type DescField, type DescMessage, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { getComments } from "@bufbuild/protoplugin";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";
import { exclusiveWith } from "../json/exclusive.ts";
import { constraints } from "./constraints.ts";

/** A JSON Schema, as OpenAPI 3.1 embeds it. */
export type JsonSchema = { [key: string]: unknown };

/** The leading comment of a declaration, without lines for linters. */
export function commentOf(desc: Parameters<typeof getComments>[0]): string {
  const lines = (getComments(desc).leading ?? "").split("\n").map((line) => line.trim());
  return lines
    .filter((line) => !line.startsWith("buf:lint:"))
    .join("\n")
    .trim();
}

/** Describes messages, each once in `components.schemas`. */
export function schemas(): {
  /** A message, by reference where it has no JSON form of its own. */
  refer(desc: DescMessage): JsonSchema;
  /** A field's values, by themselves. */
  value(field: DescField): JsonSchema;
  /** All messages that were referred to, by name. */
  all: Record<string, JsonSchema>;
} {
  const all: Record<string, JsonSchema> = {};
  return { refer, value: valueOf, all };

  function refer(desc: DescMessage): JsonSchema {
    const known = wellKnown(desc);
    if (known !== undefined) return known;
    if (all[desc.typeName] === undefined) {
      // Stands in while the fields are described, for messages that hold themselves.
      all[desc.typeName] = {};
      all[desc.typeName] = object(desc, desc.fields);
    }
    return { $ref: `#/components/schemas/${desc.typeName}` };
  }

  /** The schema of an object with these fields. */
  function object(desc: DescMessage, fields: readonly DescField[]): JsonSchema {
    const required = fields.filter(isRequired);
    return {
      type: "object",
      ...described(commentOf(desc)),
      properties: Object.fromEntries(fields.map((field) => [field.jsonName, of(field)])),
      ...(required.length === 0 ? {} : { required: required.map(({ jsonName }) => jsonName) }),
    };
  }

  function of(field: DescField): JsonSchema {
    const behavior = behaviors(field);
    const schema = valueOf(field);
    return {
      ...(field.fieldKind === "message" && !isRequired(field) ? nullable(schema) : schema),
      ...described(withOneof(field)),
      ...(behavior.includes(FieldBehavior.OUTPUT_ONLY) ? { readOnly: true } : {}),
      ...(behavior.includes(FieldBehavior.INPUT_ONLY) ? { writeOnly: true } : {}),
      ...(field.deprecated ? { deprecated: true } : {}),
    };
  }

  function valueOf(field: DescField): JsonSchema {
    const { own, items, keys } = constraints(field);
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: { ...itemOf(field), ...items }, ...own };
      case "map": {
        const names = Object.keys(keys).length === 0 ? {} : { propertyNames: keys };
        return { type: "object", ...names, additionalProperties: { ...itemOf(field), ...items }, ...own };
      }
      default:
        return { ...itemOf(field), ...own };
    }
  }

  function itemOf(field: DescField): JsonSchema {
    if (field.scalar !== undefined) return scalar(field.scalar);
    if (field.enum !== undefined) {
      if (field.enum.typeName === "google.protobuf.NullValue") return { type: "null" };
      return { type: "string", enum: [...new Set(field.enum.values.map(({ jsonName }) => jsonName))] };
    }
    return refer(field.message as DescMessage);
  }
}

function described(description: string): JsonSchema {
  return description === "" ? {} : { description };
}

function withOneof(field: DescField): string {
  const comment = commentOf(field);
  const others = exclusiveWith(field)?.map(({ jsonName }) => jsonName) ?? [];
  return others.length === 0 ? comment : `${comment}\nNot together with ${others.join(", ")}.`.trim();
}

function behaviors(field: DescField): FieldBehavior[] {
  return hasOption(field, field_behavior) ? getOption(field, field_behavior) : [];
}

/** Whether requests must have the field. */
function isRequired(field: DescField): boolean {
  return behaviors(field).includes(FieldBehavior.REQUIRED) || constraints(field).required;
}

/** The schema of a message field, which is null when it is unset. */
function nullable(schema: JsonSchema): JsonSchema {
  if ("$ref" in schema) return { anyOf: [schema, { type: "null" }] };
  return typeof schema.type === "string" && schema.type !== "null"
    ? { ...schema, type: [schema.type, "null"] }
    : schema;
}

function scalar(type: ScalarType): JsonSchema {
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
      return { type: "string", format: unsigned ? "uint64" : "int64", pattern: unsigned ? "^[0-9]+$" : "^-?[0-9]+$" };
    }
  }
}

function wellKnown(desc: DescMessage): JsonSchema | undefined {
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
  return isWrapperDesc(desc) && value?.fieldKind === "scalar" ? scalar(value.scalar) : undefined;
}
