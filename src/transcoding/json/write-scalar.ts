import { ScalarType } from "@bufbuild/protobuf";

/** Makes of a value what JSON.stringify is to write; undefined where that is the value itself. */
export type Write = ((value: unknown) => unknown) | undefined;

/** The writer of a scalar. 64-bit integers go out as strings. */
export function scalarWriter(scalar: ScalarType): Write {
  switch (scalar) {
    case ScalarType.BYTES:
      return (value) => base64(value as Uint8Array);
    case ScalarType.DOUBLE:
      return (value) => doubleJson(value as number);
    case ScalarType.FLOAT:
      return (value) => floatJson(value as number);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return String;
    default:
      return undefined;
  }
}

/** The zero value of a scalar, as JSON shows it. */
export function zeroOf(scalar: ScalarType): string | number | boolean {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return "";
    case ScalarType.BOOL:
      return false;
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return "0";
    default:
      return 0;
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

// JSON.stringify writes -0 as 0; TypeScript does not know rawJSON yet.
const minusZero = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON("-0");

/** A double; not a number and the infinities as strings, minus zero with its sign. */
export function doubleJson(value: number): unknown {
  if (value === 0) return Object.is(value, -0) ? minusZero : 0;
  return Number.isFinite(value) ? value : String(value);
}

/** The number with the fewest digits that is the same float again. */
function floatJson(value: number): unknown {
  const single = Math.fround(value);
  if (!Number.isFinite(single) || (Number.isInteger(single) && Math.abs(single) < 2 ** 24)) return doubleJson(single);
  for (let digits = 6; digits < 9; digits++) {
    const shorter = Number(single.toPrecision(digits));
    if (Math.fround(shorter) === single) return shorter;
  }
  return Number(single.toPrecision(9));
}
