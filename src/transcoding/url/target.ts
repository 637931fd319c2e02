import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { decimalInteger, int32Range, int64Range, type Range, uint32Range, uint64Range } from "../json/integer.ts";
import { fieldsByKey } from "../json/key-finder.ts";
import { durationOf, fieldMaskOf, timestampOf } from "../json/known-text.ts";
import { bytesOf, doubleOf, enumNumbers, unknownValue } from "../json/read-scalar.ts";
import { fail } from "../json/scan.ts";
import type { MessageValues } from "../json/values.ts";
import { zeroMaker } from "../json/values.ts";

/** A field of a request that a part of the URL sets, reached through singular messages. */
export interface Target {
  /** Proto names joined by dots: the same for each spelling. */
  readonly id: string;
  /** JSON names joined by dots, for messages to people. */
  readonly path: string;
  /** The fields on the way, the one that is set last. */
  readonly fields: readonly DescField[];
  /** What a text means for the field; undefined when no text can say its values. */
  readonly read: ReadText | undefined;
  /** The message that holds the field, made on the way when there is none. */
  holder(root: MessageValues): MessageValues;
}

/** The field of a message that a part of a path of fields names. */
type Find = (message: DescMessage, name: string) => DescField | undefined;

const byKey: Find = (message, name) => fieldsByKey(message).get(name);

/**
 * Finds the target of these field names, which are JSON or proto names unless `find` reads them otherwise; returns the
 * DescMessage that lacks the name at `at` when there is none.
 */
export function findTarget(
  root: DescMessage,
  names: readonly string[],
  find: Find = byKey,
): Target | { lacking: DescMessage; at: number } {
  const fields: DescField[] = [];
  let message = root;
  for (const [i, name] of names.entries()) {
    const field = find(message, name);
    if (field === undefined) return { lacking: message, at: i };
    fields.push(field);
    if (i === names.length - 1) break;
    if (field.fieldKind !== "message" || hasCustomJsonRepresentation(field.message)) {
      return { lacking: message, at: i + 1 };
    }
    message = field.message;
  }
  const last = fields.at(-1);
  const makers = fields.slice(0, -1).map((field) => zeroMaker(field.message as DescMessage));
  return {
    id: fields.map((f) => f.name).join("."),
    path: fields.map((f) => f.jsonName).join("."),
    fields,
    read: last === undefined ? undefined : textReader(last),
    holder(start) {
      let at = start;
      for (const [i, make] of makers.entries()) at = step(at, fields[i] as DescField, make);
      return at;
    },
  };
}

function step(message: MessageValues, field: DescField, make: () => MessageValues): MessageValues {
  const held = valueIn(message, field);
  if (held !== undefined) return held as MessageValues;
  const made = make();
  setIn(message, field, made);
  return made;
}

/** The value of a field, undefined when it is unset. */
export function valueIn(message: MessageValues, field: DescField): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const choice = message[field.oneof.localName] as { case?: string; value?: unknown } | undefined;
  return choice?.case === field.localName ? choice.value : undefined;
}

/** Sets a field; fails when another member of its oneof is set. */
export function setIn(message: MessageValues, field: DescField, value: unknown): void {
  if (field.oneof === undefined) {
    message[field.localName] = value;
    return;
  }
  const set = (message[field.oneof.localName] as { case?: string }).case;
  if (set !== undefined && set !== field.localName) {
    const other = field.oneof.fields.find((member) => member.localName === set)?.jsonName;
    fail(0, `only one of ${JSON.stringify(other)} and ${JSON.stringify(field.jsonName)} may be set`);
  }
  message[field.oneof.localName] = { case: field.localName, value };
}

/** Makes a field's value of a text of the URL, decoded; fails with what is wrong. */
export type ReadText = (text: string) => unknown;

/** The reader for one value of a field (an item of a list, a value of a map); undefined when no text can say it. */
export function textReader(field: DescField): ReadText | undefined {
  if (field.scalar !== undefined) {
    return scalarText(field.scalar, field.fieldKind !== "map" && "longAsString" in field && field.longAsString);
  }
  if (field.enum !== undefined) {
    const desc = field.enum;
    const numbers = enumNumbers(desc);
    return (text) => {
      const number = /^-?[0-9]+$/.test(text) ? Number(text) : numbers.get(text);
      if (number === undefined || desc.value[number] === undefined) fail(0, unknownValue(desc, text));
      return number;
    };
  }
  return field.message === undefined ? undefined : messageText(field, field.message);
}

function messageText(field: DescField, desc: DescMessage): ReadText | undefined {
  const $typeName = desc.typeName;
  switch ($typeName) {
    case "google.protobuf.Timestamp":
      return (text) => ({ $typeName, ...right(timestampOf(text)) });
    case "google.protobuf.Duration":
      return (text) => ({ $typeName, ...right(durationOf(text)) });
    case "google.protobuf.FieldMask":
      return (text) => {
        const paths = fieldMaskOf(text);
        return typeof paths === "string" ? fail(0, paths) : { $typeName, paths };
      };
  }
  const value = desc.fields[0];
  if (!isWrapperDesc(desc) || value?.fieldKind !== "scalar") return undefined;
  const read = scalarText(value.scalar, value.longAsString);
  return field.fieldKind === "message" && field.oneof === undefined
    ? read
    : (text) => ({ $typeName, value: read(text) });
}

function right<T extends object>(value: T | string): T {
  return typeof value === "string" ? fail(0, value) : value;
}

function scalarText(scalar: ScalarType, longAsString: boolean): ReadText {
  switch (scalar) {
    case ScalarType.STRING:
      return (text) => text;
    case ScalarType.BOOL:
      return (text) => (text === "true" ? true : text === "false" ? false : fail(0, "must be true or false"));
    case ScalarType.BYTES:
      return (text) => bytesOf(text) ?? fail(0, "must be base64");
    case ScalarType.DOUBLE:
      return number;
    case ScalarType.FLOAT:
      return (text) => {
        const value = number(text);
        const single = Math.fround(value);
        return Number.isFinite(single) || !Number.isFinite(value) ? single : fail(0, "is outside the range of a float");
      };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return (text) => Number(integer(text, int32Range));
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return (text) => Number(integer(text, uint32Range));
    default: {
      const range = scalar === ScalarType.UINT64 || scalar === ScalarType.FIXED64 ? uint64Range : int64Range;
      return longAsString ? (text) => String(integer(text, range)) : (text) => integer(text, range);
    }
  }
}

function number(text: string): number {
  const value = doubleOf(text);
  return typeof value === "string" ? fail(0, value) : value;
}

function integer(text: string, range: Range): bigint {
  const value = decimalInteger(text, range);
  return typeof value === "string" ? fail(0, value) : value;
}
