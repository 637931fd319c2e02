import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import {
  AnyValueSchema,
  ArrayValueSchema,
  KeyValueListSchema,
  KeyValueSchema,
} from "#gen/opentelemetry/proto/common/v1/common_pb.ts";
import {
  delimited,
  type Fields,
  fieldsWithin,
  fixed64,
  next,
  valueBytes,
  valueInteger,
  valueText,
  varint,
} from "./fields.ts";

/** An attribute in the bytes of a message: its key, and where its value lies. */
export interface Attribute {
  readonly key: string;
  readonly within: Fields;
  readonly from: number;
  readonly to: number;
}

/** Lists and maps that lie deeper are null: what is stored as JSON has a bound of its own. */
const levelsMax = 8;
const { stringValue, boolValue, intValue, doubleValue, arrayValue, kvlistValue, bytesValue } = AnyValueSchema.field;
const [keyNumber, valueNumber] = [KeyValueSchema.field.key.number, KeyValueSchema.field.value.number];
const elements = ArrayValueSchema.field.values.number;
const entries = KeyValueListSchema.field.values.number;

/** The attribute in the field that was found, or between other places of its message. @throws code 3 */
export function attributeIn(field: Fields, start = field.from, end = field.to): Attribute {
  const within = fieldsWithin(field, start, end);
  let [key, from, to] = ["", 0, 0];
  while (next(within)) {
    if (within.type !== delimited) continue;
    if (within.field === keyNumber) key = valueText(within);
    else if (within.field === valueNumber) ({ from, to } = within);
  }
  return { key, within, from, to };
}

const keyTag = keyNumber * 8 + delimited;
const valueTag = valueNumber * 8 + delimited;

/** Whether the attribute in the field that was found has this key, of at most 127 characters of ASCII. It is read only where it may. */
export function hasKey(field: Fields, key: string): boolean {
  const { bytes, from, to } = field;
  const keyEnd = from + 2 + (bytes[from + 1] as number);
  // As everybody writes it: a key, then a value or nothing.
  const plain =
    to - from > 2 && bytes[from] === keyTag && (keyEnd === to || (keyEnd < to && bytes[keyEnd] === valueTag));
  if (plain && keyEnd - from - 2 !== key.length) return false;
  return attributeIn(field).key === key;
}

/**
 * A value as JSON: integers beyond 2^53 and numbers that are not finite as text, bytes as base64, an empty value as null.
 * @param charactersMax of a text that is longer only so much is read that it is still longer
 */
export function jsonOf({ within, from, to }: Attribute, charactersMax?: number): JsonValue {
  return jsonIn(fieldsWithin(within, from, to), 1, charactersMax);
}

/** The same of a value whose fields begin here. */
export function jsonIn(value: Fields, level = 1, charactersMax?: number): JsonValue {
  let found: JsonValue = null;
  while (next(value)) {
    if (value.type === delimited) {
      if (value.field === stringValue.number) found = storable(valueText(value, charactersMax));
      else if (value.field === arrayValue.number) found = level > levelsMax ? null : listOf(value, level + 1);
      else if (value.field === kvlistValue.number) found = level > levelsMax ? null : mapOf(value, level + 1);
      else if (value.field === bytesValue.number) found = Buffer.from(valueBytes(value)).toString("base64");
    } else if (value.type === varint) {
      if (value.field === boolValue.number) found = value.number !== 0;
      else if (value.field === intValue.number) found = jsonNumber(valueInteger(value));
    } else if (value.type === fixed64 && value.field === doubleValue.number)
      found = jsonNumber(value.view.getFloat64(value.from, true));
  }
  return found;
}

const jsonNumber = (number: number | bigint) => (Number.isFinite(number) ? (number as number) : String(number));

function listOf(field: Fields, level: number): JsonValue[] {
  const list: JsonValue[] = [];
  for (const all = fieldsWithin(field); next(all); )
    if (all.field === elements && all.type === delimited) list.push(jsonIn(fieldsWithin(all), level));
  return list;
}

/** Of a key that comes twice, the last. */
function mapOf(field: Fields, level: number): JsonObject {
  const map: [string, JsonValue][] = [];
  for (const all = fieldsWithin(field); next(all); ) {
    if (all.field !== entries || all.type !== delimited) continue;
    const { key, within, from, to } = attributeIn(all);
    map.push([storable(key), jsonIn(fieldsWithin(within, from, to), level)]);
  }
  return Object.fromEntries(map);
}

/** Whether the text of a value is empty; lists and maps are not read for it. */
export function isEmpty({ within, from, to }: Attribute): boolean {
  let empty = true;
  for (const value = fieldsWithin(within, from, to); next(value); ) {
    if (value.field === stringValue.number || value.field === bytesValue.number) empty = value.from === value.to;
    else if (AnyValueSchema.fields.length >= value.field) empty = false;
  }
  return empty;
}

/** A value as the text of a label or dimension: lists and maps as JSON, an empty value as an empty text. */
export function labelText(json: JsonValue): string {
  if (json === null) return "";
  return typeof json === "object" ? JSON.stringify(json) : String(json);
}

/** What PostgreSQL's text cannot hold: NUL. Binary texts are well-formed. */
export function storable(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", " ") : text;
}
