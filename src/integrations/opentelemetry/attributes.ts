import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { AnyValue, KeyValue } from "#gen/opentelemetry/proto/common/v1/common_pb.ts";

/** Lists and maps that lie deeper are null: what is stored as JSON has a bound of its own. */
const levelsMax = 8;

/** A value as JSON: integers beyond 2^53 and numbers that are not finite as text, bytes as base64, an empty value as null. */
export function jsonOf(value: AnyValue | undefined, level = 1): JsonValue {
  const kind = value?.value;
  switch (kind?.case) {
    case "stringValue":
      return storable(kind.value);
    case "boolValue":
      return kind.value;
    case "intValue":
      return Number.isSafeInteger(Number(kind.value)) ? Number(kind.value) : String(kind.value);
    case "doubleValue":
      return Number.isFinite(kind.value) ? kind.value : String(kind.value);
    case "bytesValue":
      return Buffer.from(kind.value).toString("base64");
    case "arrayValue":
      return level > levelsMax ? null : kind.value.values.map((each) => jsonOf(each, level + 1));
    case "kvlistValue":
      return level > levelsMax ? null : jsonObjectOf(kind.value.values, level + 1);
    default:
      return null;
  }
}

/** Attributes as a JSON object; of a key that comes twice, the last. */
export function jsonObjectOf(attributes: readonly KeyValue[], level = 1): JsonObject {
  return Object.fromEntries(attributes.map(({ key, value }) => [storable(key), jsonOf(value, level)]));
}

/** A value as the text of a label or dimension: lists and maps as JSON, an empty value as an empty text. */
export function textOf(value: AnyValue | undefined): string {
  const json = jsonOf(value);
  if (json === null) return "";
  return typeof json === "object" ? JSON.stringify(json) : String(json);
}

/** What PostgreSQL's text cannot hold: NUL. Binary texts are well-formed, those of JSON may hold lone surrogates. */
function storable(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", " ").toWellFormed() : text.toWellFormed();
}
