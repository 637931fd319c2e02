import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { decimalInteger, int32Range, int64Range, type Range, uint32Range, uint64Range } from "../json/integer.ts";
import { durationOf, fieldMaskOf, timestampOf } from "../json/known-text.ts";
import { bytesOf, doubleOf, enumNumbers, unknownValue } from "../json/read-scalar.ts";
import { fail } from "../json/scan.ts";

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
