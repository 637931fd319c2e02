import { type DescMessage, type Message, type Registry, toBinary } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import {
  addBytes,
  countHeld,
  entryBytes,
  messageBoundsOf,
  numberBytes,
  stringBytes,
} from "../../wire/message-limits.ts";
import { durationOf, fieldMaskOf, type Instant, timestampOf } from "./known-text.ts";
import { skip } from "./pass-value.ts";
import type { JsonReader, ReadMessage } from "./read-json.ts";
import { readDouble, scalarReader } from "./read-scalar.ts";
import { key, string } from "./read-string.ts";
import { elements, members } from "./read-structure.ts";
import { colon, endOf, enter, fail, next, quotedKey, type Scan, unexpected, word } from "./scan.ts";
import { type MessageValues, setOwn } from "./values.ts";

/** The reader of a well-known type that has a JSON form of its own; undefined for all other messages. */
export function wellKnownReader(desc: DescMessage, registry: Registry, reader: JsonReader): ReadMessage | undefined {
  const $typeName = desc.typeName;
  const { bytes } = messageBoundsOf(desc);
  switch ($typeName) {
    case "google.protobuf.Timestamp":
      return (s, into) => {
        if (s.codes[s.at] !== 34) unexpected(s, "a time such as 2026-11-29T09:00:00Z");
        return instant(s, timestampOf, into ?? { $typeName }, bytes);
      };
    case "google.protobuf.Duration":
      return (s, into) => instant(s, durationOf, into ?? { $typeName }, bytes);
    case "google.protobuf.FieldMask":
      return (s, into) => Object.assign(into ?? { $typeName }, { paths: readMask(s) });
    case "google.protobuf.Value":
      return (s, into) => Object.assign(into ?? { $typeName }, { kind: readKind(s) });
    case "google.protobuf.Struct":
      return (s, into) => Object.assign(into ?? { $typeName }, { fields: readStruct(s) });
    case "google.protobuf.ListValue":
      return (s, into) => Object.assign(into ?? { $typeName }, { values: readList(s) });
    case "google.protobuf.Any":
      return (s, into) => Object.assign(into ?? { $typeName }, readAny(s, registry, reader));
  }
  const field = desc.fields[0];
  if (!isWrapperDesc(desc) || field?.fieldKind !== "scalar") return undefined;
  const read = scalarReader(field.scalar, field.longAsString);
  return (s, into) => {
    const from = s.at;
    const value = read(s);
    addBytes(s.tally, bytes + s.at - from);
    return Object.assign(into ?? { $typeName }, { value });
  };
}

function instant(
  s: Scan,
  parse: (text: string) => Instant | string,
  into: MessageValues,
  bytes: number,
): MessageValues {
  addBytes(s.tally, bytes);
  const from = s.at;
  const value = parse(string(s));
  if (typeof value === "string") fail(from, value);
  into.seconds = value.seconds;
  into.nanos = value.nanos;
  return into;
}

function readMask(s: Scan): string[] {
  const from = s.at;
  const text = string(s);
  addBytes(s.tally, text.length + stringBytes);
  for (let at = 0; at >= 0; at = text.indexOf(",", at + 1)) countValue(s);
  const paths = fieldMaskOf(text);
  if (typeof paths === "string") fail(from, paths);
  return paths;
}

/** Counts a value of what its field holds. @throws code 3 when it is one too many */
function countValue({ nodes, tally }: Scan): void {
  if (nodes?.holder !== undefined) countHeld(tally, nodes, nodes.holder);
}

/** Counts a value before it is made. @throws code 3 when it is one too many, code 8 for too much memory */
function countJson(s: Scan, code: number): void {
  countValue(s);
  addBytes(s.tally, code === 123 || code === 91 ? entryBytes : numberBytes);
}

function countedText(s: Scan, read: (s: Scan) => string): string {
  const from = s.at;
  const text = read(s);
  addBytes(s.tally, s.at - from + stringBytes);
  return text;
}

function readKind(s: Scan): { case: string; value: unknown } {
  const code = s.codes[s.at] as number;
  countJson(s, code);
  switch (code) {
    case 34:
      return { case: "stringValue", value: countedText(s, string) };
    case 123:
      return { case: "structValue", value: { $typeName: "google.protobuf.Struct", fields: readStruct(s) } };
    case 91:
      return { case: "listValue", value: { $typeName: "google.protobuf.ListValue", values: readList(s) } };
    case 110:
      word(s, "null");
      return { case: "nullValue", value: 0 };
    case 116:
      word(s, "true");
      return { case: "boolValue", value: true };
    case 102:
      word(s, "false");
      return { case: "boolValue", value: false };
    default:
      return { case: "numberValue", value: readNumber(s) };
  }
}

function readStruct(s: Scan): MessageValues {
  const fields: MessageValues = {};
  objectAt(s);
  addBytes(s.tally, entryBytes);
  members(s, (key) => {
    addBytes(s.tally, key.length + stringBytes);
    setOwn(fields, key, { $typeName: "google.protobuf.Value", kind: readKind(s) });
  });
  return fields;
}

function readList(s: Scan): unknown[] {
  const values: unknown[] = [];
  if (s.codes[s.at] !== 91) unexpected(s, "a list");
  elements(s, () => values.push({ $typeName: "google.protobuf.Value", kind: readKind(s) }));
  return values;
}

function objectAt(s: Scan): void {
  if (s.codes[s.at] !== 123) unexpected(s, "an object");
}

function readNumber(s: Scan): number {
  const c = s.codes[s.at] as number;
  if (c !== 45 && !(c >= 48 && c <= 57)) unexpected(s, "a value");
  return readDouble(s);
}

/** Reads an object as plain JSON, the way that protobuf-es holds google.protobuf.Struct in a field. */
export function jsonObject(s: Scan): MessageValues {
  objectAt(s);
  enter(s);
  const object: MessageValues = {};
  if (next(s) === 125) {
    s.at++;
    s.depth--;
    return object;
  }
  do {
    if (next(s) !== 34) unexpected(s, "a key");
    const keyAt = s.at;
    const name = countedText(s, key);
    if (Object.hasOwn(object, name)) fail(keyAt, `${quotedKey(name)} occurs twice`);
    colon(s);
    setOwn(object, name, jsonValue(s));
  } while (!endOf(s, 125, "}"));
  return object;
}

function jsonValue(s: Scan): unknown {
  const code = s.codes[s.at] as number;
  countJson(s, code);
  switch (code) {
    case 34:
      return countedText(s, string);
    case 123:
      return jsonObject(s);
    case 91: {
      const list: unknown[] = [];
      elements(s, () => list.push(jsonValue(s)));
      return list;
    }
    case 110:
      word(s, "null");
      return null;
    case 116:
      word(s, "true");
      return true;
    case 102:
      word(s, "false");
      return false;
    default:
      return readNumber(s);
  }
}

function readAny(s: Scan, registry: Registry, reader: JsonReader): { typeUrl: string; value: Uint8Array } {
  objectAt(s);
  const from = s.at;
  const depth = s.depth;
  let typeUrl: string | undefined;
  let typeAt = from;
  let empty = true;
  members(s, (key) => {
    empty = false;
    if (key !== "@type") return skip(s);
    typeAt = s.at;
    typeUrl = string(s);
  });
  if (empty) return { typeUrl: "", value: new Uint8Array() };
  if (typeUrl === undefined) fail(from, 'must have "@type"');
  const name = typeUrl.slice(typeUrl.lastIndexOf("/") + 1);
  const desc = typeUrl.includes("/") ? registry.getMessage(name) : undefined;
  if (desc === undefined) fail(typeAt, `${quotedKey(typeUrl)} is no known type`);
  s.at = from;
  s.depth = depth;
  const message = hasCustomJsonRepresentation(desc) ? wrapped(s, desc, reader) : inline(s, desc, reader);
  try {
    return { typeUrl, value: toBinary(desc, message as Message & MessageValues) };
  } catch {
    return fail(from, "lacks a required field");
  }
}

/** Reads `{"@type": …, "value": …}`. */
function wrapped(s: Scan, desc: DescMessage, reader: JsonReader): MessageValues {
  let message: MessageValues | undefined;
  const from = s.at;
  members(s, (key, keyAt) => {
    if (key === "value") message = reader.message(desc)(s);
    else if (key === "@type" || s.ignoreUnknown) skip(s);
    else fail(keyAt, `unknown field ${quotedKey(key)} beside "@type" and "value"`);
  });
  if (message === undefined) fail(from, 'must have "value"');
  return message;
}

/** Reads an object whose `@type` stands among the message's own fields. */
function inline(s: Scan, desc: DescMessage, reader: JsonReader): MessageValues {
  const outer = s.typedDepth;
  s.typedDepth = s.depth + 1;
  const message = reader.message(desc)(s);
  s.typedDepth = outer;
  return message;
}
