import { type DescMessage, fromBinary, type Registry } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { durationText, fieldMaskText, type Instant, timestampText } from "./known-text.ts";
import { type MessageValues, setOwn } from "./values.ts";
import type { JsonWriter, WriteMessage } from "./write-json.ts";
import { doubleJson, scalarWriter, zeroOf } from "./write-scalar.ts";

/** The writer of a well-known type that has a JSON form of its own; undefined for all other messages. */
export function wellKnownWriter(desc: DescMessage, registry: Registry, writer: JsonWriter): WriteMessage | undefined {
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return (message) => timestampText(instant(message));
    case "google.protobuf.Duration":
      return (message) => durationText(instant(message));
    case "google.protobuf.FieldMask":
      return (message) => fieldMaskText((message.paths as string[] | undefined) ?? []);
    case "google.protobuf.Value":
      return valueJson;
    case "google.protobuf.Struct":
      return structJson;
    case "google.protobuf.ListValue":
      return listJson;
    case "google.protobuf.Any":
      return (message) => anyJson(message as { typeUrl?: string; value?: Uint8Array }, registry, writer);
  }
  const field = desc.fields[0];
  if (!isWrapperDesc(desc) || field?.fieldKind !== "scalar") return undefined;
  const write = scalarWriter(field.scalar);
  const zero = zeroOf(field.scalar);
  return ({ value }) => (value === undefined ? zero : write === undefined ? value : write(value));
}

function instant(message: MessageValues): Instant {
  const { seconds = 0n, nanos = 0 } = message as Partial<Instant>;
  return { seconds, nanos };
}

function valueJson(message: MessageValues): unknown {
  const kind = message.kind as { case?: string; value?: unknown } | undefined;
  switch (kind?.case) {
    case "stringValue":
    case "boolValue":
      return kind.value;
    case "numberValue":
      if (!Number.isFinite(kind.value)) throw notFinite("google.protobuf.Value");
      return doubleJson(kind.value as number);
    case "structValue":
      return structJson(kind.value as MessageValues);
    case "listValue":
      return listJson(kind.value as MessageValues);
    default:
      return null;
  }
}

/** A number that JSON cannot hold is in a message of this type. */
export function notFinite(type: string): Error {
  return new Error(`${type} holds a number that JSON cannot`);
}

function structJson(message: MessageValues): MessageValues {
  const fields = (message.fields as MessageValues | undefined) ?? {};
  const object: MessageValues = {};
  for (const key of Object.keys(fields)) setOwn(object, key, valueJson(fields[key] as MessageValues));
  return object;
}

function listJson(message: MessageValues): unknown[] {
  return ((message.values as MessageValues[] | undefined) ?? []).map((value) => valueJson(value));
}

function anyJson(any: { typeUrl?: string; value?: Uint8Array }, registry: Registry, writer: JsonWriter): unknown {
  const { typeUrl = "", value = new Uint8Array() } = any;
  if (typeUrl === "") return {};
  const desc = registry.getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
  if (desc === undefined) throw new Error(`google.protobuf.Any holds ${typeUrl}, which is no known type`);
  return typedJson(typeUrl, desc, fromBinary(desc, value) as unknown as MessageValues, writer);
}

/** A message in the form that google.protobuf.Any has in JSON: `@type` first. */
export function typedJson(typeUrl: string, desc: DescMessage, message: MessageValues, writer: JsonWriter): unknown {
  const write = writer.message(desc);
  if (hasCustomJsonRepresentation(desc)) return { "@type": typeUrl, value: write(message) };
  return { "@type": typeUrl, ...(write(message) as MessageValues) };
}
