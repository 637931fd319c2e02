import { create, type DescField, type DescMessage, type Message, ScalarType, toBinary } from "@bufbuild/protobuf";
import { anyPack, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import fc, { type Arbitrary } from "fast-check";
import { foreignMessage } from "./schema.ts";

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

/** Any message of this type, its fields set or not, messages inside it to some depth. */
export function anyMessage(desc: DescMessage, depth = 2): Arbitrary<Message> {
  const known = wellKnown(desc, depth);
  if (known !== undefined) return known;
  const fields = desc.fields.filter((field) => depth > 0 || field.message === undefined);
  return fc
    .subarray(fields, { maxLength: Math.min(8, fields.length) })
    .chain((chosen) =>
      fc.tuple(...chosen.map((field) => fieldValue(field, depth).map((value) => [field, value] as const))),
    )
    .map((set) => {
      const message = create(desc) as Message & Record<string, unknown>;
      for (const [field, value] of set) {
        if (field.oneof === undefined) message[field.localName] = value;
        else message[field.oneof.localName] = { case: field.localName, value };
      }
      // An unset google.protobuf.Value is written as null, which reads back as the null value.
      for (const field of desc.fields) {
        if (field.fieldKind === "message" && field.oneof === undefined && isValue(field.message)) {
          message[field.localName] ??= nullValue();
        }
      }
      for (const { presence, localName } of desc.fields) {
        // The default stands on the prototype chain; a required field needs a value of its own.
        if (presence === legacyRequired) Object.assign(message, { [localName]: message[localName] });
      }
      return message;
    });
}

// FeatureSet.FieldPresence.LEGACY_REQUIRED
const legacyRequired = 3;

const isValue = (desc: DescMessage) => desc.typeName === "google.protobuf.Value";
const nullValue = () => ({ $typeName: "google.protobuf.Value", kind: { case: "nullValue", value: 0 } });

function fieldValue(field: DescField, depth: number): Arbitrary<unknown> {
  switch (field.fieldKind) {
    case "list":
      return fc.array(itemValue(field, depth), { maxLength: 3 });
    case "map":
      return fc
        .array(fc.tuple(mapKey(field.mapKey), itemValue(field, depth)), { maxLength: 3 })
        .map((entries) => Object.fromEntries(entries));
    case "message": {
      const value = field.message.fields[0];
      if (field.oneof === undefined && isWrapperDesc(field.message) && value?.fieldKind === "scalar") {
        return scalarValue(value.scalar);
      }
      return messageValue(field, field.message, depth);
    }
    default:
      return itemValue(field, depth);
  }
}

function itemValue(field: DescField, depth: number): Arbitrary<unknown> {
  if (field.scalar !== undefined) {
    const value = scalarValue(field.scalar);
    return "longAsString" in field && field.longAsString ? value.map(String) : value;
  }
  if (field.enum !== undefined) {
    const declared = fc.constantFrom(...field.enum.values.map(({ number }) => number));
    const isNull = field.enum.typeName === "google.protobuf.NullValue";
    return field.enum.open && !isNull ? fc.oneof(declared, fc.integer()) : declared;
  }
  return messageValue(field, field.message as DescMessage, depth);
}

function messageValue(field: DescField, desc: DescMessage, depth: number): Arbitrary<unknown> {
  const plain = desc.typeName === "google.protobuf.Struct" && field.parent.typeName !== "google.protobuf.Value";
  return plain ? plainObject : anyMessage(desc, depth - 1);
}

// A Struct is a plain object to protobuf-es; JSON.stringify has no minus zero.
const plainObject = fc.dictionary(text(), fc.jsonValue({ maxDepth: 2 }).map(withoutMinusZero), { maxKeys: 3 });

function withoutMinusZero(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** Text of all planes, quotes, control characters and the names that objects inherit. */
export function text(): Arbitrary<string> {
  return fc.oneof(
    fc.string({ unit: "binary", maxLength: 20 }),
    fc.string({ maxLength: 80 }),
    fc.constantFrom("__proto__", "constructor", "toJSON", "", "\u2028", '"\\', "@type", "value"),
  );
}

function scalarValue(scalar: ScalarType): Arbitrary<unknown> {
  switch (scalar) {
    case ScalarType.STRING:
      return text();
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 12 });
    case ScalarType.DOUBLE:
      return fc.double();
    case ScalarType.FLOAT:
      return fc.float();
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return fc.integer({ min: 0, max: 2 ** 32 - 1 });
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return fc.integer();
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    default:
      return fc.bigInt({ min: int64Min, max: int64Max });
  }
}

function mapKey(scalar: ScalarType): Arbitrary<string> {
  return scalar === ScalarType.STRING ? text() : scalarValue(scalar).map(String);
}

function wellKnown(desc: DescMessage, depth: number): Arbitrary<Message> | undefined {
  const make = (init: object) => create(desc, init as never) as Message;
  const nanos = fc.oneof(
    fc.constantFrom(0, 1, 999999999, 500000000, 123456000),
    fc.integer({ min: 0, max: 999999999 }),
  );
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      return fc
        .tuple(fc.bigInt({ min: -62135596800n, max: 253402300799n }), nanos)
        .map(([seconds, nanos]) => make({ seconds, nanos }));
    case "google.protobuf.Duration":
      return fc
        .tuple(fc.bigInt({ min: 0n, max: 315576000000n }), nanos, fc.boolean())
        .map(([seconds, nanos, minus]) =>
          make(minus ? { seconds: -seconds, nanos: nanos && -nanos } : { seconds, nanos }),
        );
    case "google.protobuf.FieldMask":
      return fc
        .array(fc.stringMatching(/^[a-z]{1,5}(?:_[a-z]{1,4}){0,2}(?:\.[a-z]{1,4}(?:_[a-z]{1,4})?)?$/), { maxLength: 3 })
        .map((paths) => make({ paths }));
    case "google.protobuf.Value":
      return fc.letrec<{ value: Message }>((tie) => ({
        value: fc.oneof(
          { maxDepth: 2, depthIdentifier: "value" },
          fc.constant(make({ kind: { case: "nullValue", value: 0 } })),
          fc
            .double({ noNaN: true, noDefaultInfinity: true })
            .map((value) => make({ kind: { case: "numberValue", value } })),
          text().map((value) => make({ kind: { case: "stringValue", value } })),
          fc.boolean().map((value) => make({ kind: { case: "boolValue", value } })),
          fc
            .array(tie("value"), { maxLength: 3 })
            .map((values) =>
              make({ kind: { case: "listValue", value: { $typeName: "google.protobuf.ListValue", values } } }),
            ),
          fc
            .dictionary(text(), tie("value"), { maxKeys: 3 })
            .map((fields) =>
              make({ kind: { case: "structValue", value: { $typeName: "google.protobuf.Struct", fields } } }),
            ),
        ),
      })).value;
    case "google.protobuf.ListValue": {
      const value = desc.fields[0]?.message as DescMessage;
      return fc
        .array(wellKnown(value, depth) as Arbitrary<Message>, { maxLength: 3 })
        .map((values) => make({ values }));
    }
    case "google.protobuf.Any": {
      const inner = ["Book", "Clause", "Editions"].map((name) => foreignMessage(name));
      const packed = inner.map((type) => anyMessage(type, depth - 1).map((message) => anyPack(type, message)));
      return fc.oneof(fc.constant(make({})), ...packed);
    }
  }
  const value = desc.fields[0];
  if (!isWrapperDesc(desc) || value?.fieldKind !== "scalar") return undefined;
  return scalarValue(value.scalar).map((held) => make({ value: held }));
}

/** The bytes of a message: equal for equal messages, and different for -0 and 0. */
export function bytesOf(desc: DescMessage, message: unknown): string {
  return Buffer.from(toBinary(desc, message as Message)).toString("hex");
}
