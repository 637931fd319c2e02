import { ScalarType } from "@bufbuild/protobuf";

/** The JSON text of a value. */
export type Write = (value: unknown) => string;

/** The writer of a scalar; `undefined` is its zero value. 64-bit integers go out as strings. */
export function scalarWriter(scalar: ScalarType): Write {
  switch (scalar) {
    case ScalarType.STRING:
      return (value) => (value === undefined ? '""' : quote(value as string));
    case ScalarType.BOOL:
      return (value) => (value === true ? "true" : "false");
    case ScalarType.BYTES:
      return (value) => (value === undefined ? '""' : `"${base64(value as Uint8Array)}"`);
    case ScalarType.DOUBLE:
      return (value) => doubleText(value as number | undefined);
    case ScalarType.FLOAT:
      return (value) => floatText(value as number | undefined);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return (value) => (value === undefined ? '"0"' : `"${value}"`);
    default:
      return (value) => (value === undefined ? "0" : String(value));
  }
}

// Beyond this length the native scan of JSON.stringify is faster than a loop.
const shortText = 48;

/** A JSON string. Lone surrogates become escapes, as JSON.stringify makes them. */
export function quote(text: string): string {
  if (text.length > shortText) return JSON.stringify(text);
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 32 || c === 34 || c === 92 || (c >= 0xd800 && c <= 0xdfff)) return JSON.stringify(text);
  }
  return `"${text}"`;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** A double; not a number and the infinities as strings, minus zero with its sign. */
export function doubleText(value = 0): string {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}

/** The shortest decimal that is the same float again. */
function floatText(value = 0): string {
  const single = Math.fround(value);
  if (!Number.isFinite(single) || Number.isInteger(single * 1024)) return doubleText(single);
  for (let digits = 6; digits < 9; digits++) {
    const shorter = Number(single.toPrecision(digits));
    if (Math.fround(shorter) === single) return String(shorter);
  }
  return String(Number(single.toPrecision(9)));
}
