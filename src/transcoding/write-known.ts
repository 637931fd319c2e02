import { type DescMessage, fromBinary, type Registry } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { durationText, fieldMaskText, type Instant, timestampText } from "./known-text.ts";
import type { Values } from "./values.ts";
import type { JsonWriter, WriteMessage } from "./write-json.ts";
import { doubleText, quote, scalarWriter } from "./write-scalar.ts";

/** The writer of a well-known type that has a JSON form of its own; undefined for all other messages. */
export function wellKnownWriter(desc: DescMessage, registry: Registry, writer: JsonWriter): WriteMessage | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return (message) => `"${timestampText(instant(message))}"`;
    case "google.protobuf.Duration":
      return (message) => `"${durationText(instant(message))}"`;
    case "google.protobuf.FieldMask":
      return (message) => `"${fieldMaskText((message.paths as string[] | undefined) ?? [])}"`;
    case "google.protobuf.Value":
      return valueText;
    case "google.protobuf.Struct":
      return structText;
    case "google.protobuf.ListValue":
      return listText;
    case "google.protobuf.Any":
      return (message) => anyText(message as { typeUrl?: string; value?: Uint8Array }, registry, writer);
  }
  const field = desc.fields[0];
  if (!isWrapperDesc(desc) || field?.fieldKind !== "scalar") return undefined;
  const write = scalarWriter(field.scalar);
  return (message) => write(message.value);
}

function instant(message: Values): Instant {
  const { seconds = 0n, nanos = 0 } = message as Partial<Instant>;
  return { seconds, nanos };
}

function valueText(message: Values): string {
  const kind = message.kind as { case?: string; value?: unknown } | undefined;
  switch (kind?.case) {
    case "stringValue":
      return quote(kind.value as string);
    case "numberValue":
      if (!Number.isFinite(kind.value)) throw new Error("google.protobuf.Value holds a number that JSON cannot");
      return doubleText(kind.value as number);
    case "boolValue":
      return String(kind.value);
    case "structValue":
      return structText(kind.value as Values);
    case "listValue":
      return listText(kind.value as Values);
    default:
      return "null";
  }
}

function structText(message: Values): string {
  const entries = Object.entries((message.fields as Values | undefined) ?? {});
  return `{${entries.map(([key, value]) => `${quote(key)}:${valueText(value as Values)}`).join(",")}}`;
}

function listText(message: Values): string {
  return `[${((message.values as Values[] | undefined) ?? []).map(valueText).join(",")}]`;
}

function anyText(any: { typeUrl?: string; value?: Uint8Array }, registry: Registry, writer: JsonWriter): string {
  const { typeUrl = "", value = new Uint8Array() } = any;
  if (typeUrl === "") return "{}";
  const desc = registry.getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
  if (desc === undefined) throw new Error(`google.protobuf.Any holds ${typeUrl}, which is no known type`);
  return typedText(typeUrl, desc, fromBinary(desc, value) as unknown as Values, writer);
}

/** A message in the form that google.protobuf.Any has in JSON: `@type` first. */
export function typedText(typeUrl: string, desc: DescMessage, message: Values, writer: JsonWriter): string {
  const text = writer.message(desc)(message);
  const head = `{"@type":${quote(typeUrl)}`;
  if (hasCustomJsonRepresentation(desc)) return `${head},"value":${text}}`;
  return text === "{}" ? `${head}}` : `${head},${text.slice(1)}`;
}
