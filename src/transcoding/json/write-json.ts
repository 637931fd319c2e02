import type { DescEnum, DescField, DescMessage, Registry } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { message as messageRules } from "#gen/buf/validate/validate_pb.ts";
import { optionOf } from "../../proto-option.ts";
import { compile, holdsPlainJson, keyLiteral, literal, type MessageValues, setOwn } from "./values.ts";
import { notFinite, wellKnownWriter } from "./write-known.ts";
import { scalarWriter, type Write, zeroOf } from "./write-scalar.ts";

/** Makes of a message what JSON.stringify is to write. */
export type WriteMessage = (message: MessageValues) => unknown;

export interface JsonWriter {
  /** The writer of a message in its JSON form; it also takes what `create` takes, members left out being unset. */
  message(desc: DescMessage): WriteMessage;
  /** The writer of one field's value, as a message holds it; undefined is an unset field. */
  field(field: DescField): (value: unknown) => unknown;
}

/**
 * Compiles writers from descriptors, each once. Every field in the order of its declaration; unset message fields as
 * `null`, unset members of a oneof and unset `optional` scalars left out. `registry` knows what Any may hold. The text is
 * left to JSON.stringify, which quotes strings several times faster than code of ours.
 */
export function jsonWriter(registry: Registry): JsonWriter {
  const compiled = new Map<DescMessage, WriteMessage>();
  const writer: JsonWriter = { message, field };
  return writer;

  function field(of: DescField): (value: unknown) => unknown {
    const write = valueOf(of);
    const unset = unsetOf(of);
    return (value) => {
      if (value === undefined || value === null) return unset;
      return write === undefined ? value : write(value);
    };
  }

  function message(desc: DescMessage): WriteMessage {
    const known = compiled.get(desc);
    if (known !== undefined) return known;
    // A placeholder while the fields compile, for messages that hold themselves.
    let write: WriteMessage | undefined;
    compiled.set(desc, (value) => (write as WriteMessage)(value));
    write = wellKnownWriter(desc, registry, writer) ?? objectWriter(desc);
    compiled.set(desc, write);
    return write;
  }

  /** The function that makes the whole object as one literal; what is left out of it is `undefined` there. */
  function objectWriter(desc: DescMessage): WriteMessage {
    const writes = desc.fields.map(valueOf);
    const unset = desc.fields.map(unsetOf);
    const groups = desc.oneofs.map(({ localName }, i) => `const g${i} = m[${literal(localName)}];`);
    const members = desc.fields.map((field, i) => {
      const held =
        field.oneof === undefined
          ? `m[${literal(field.localName)}]`
          : `(g${desc.oneofs.indexOf(field.oneof)}?.case === ${literal(field.localName)} ? g${desc.oneofs.indexOf(field.oneof)}.value : undefined)`;
      const written = writes[i] === undefined ? "v" : `writes[${i}](v)`;
      return `${keyLiteral(field.jsonName)}: ((v = ${held}) == null${ownTest(field)}) ? ${isLeftOut(field) ? "undefined" : `unset[${i}]`} : ${written}`;
    });
    return compile(
      { writes, unset, hasOwn: Object.hasOwn },
      `(m) => { ${groups.join(" ")} let v; return { ${members.join(", ")} }; }`,
    );
  }

  function valueOf(field: DescField): Write {
    switch (field.fieldKind) {
      case "scalar":
        return scalarWriter(field.scalar);
      case "enum":
        return enumWriter(field.enum);
      case "message":
        return messageValue(field, field.message);
      case "list":
        return listWriter(itemWriter(field));
      case "map":
        return mapWriter(itemWriter(field));
    }
  }

  function itemWriter(field: DescField & { fieldKind: "list" | "map" }): Write {
    if (field.scalar !== undefined) return scalarWriter(field.scalar);
    if (field.enum !== undefined) return enumWriter(field.enum);
    return messageValue(field, field.message);
  }

  function messageValue(field: DescField, desc: DescMessage): Write {
    if (holdsPlainJson(field)) return finite;
    const value = desc.fields[0];
    if (
      field.fieldKind === "message" &&
      field.oneof === undefined &&
      isWrapperDesc(desc) &&
      value?.fieldKind === "scalar"
    ) {
      return scalarWriter(value.scalar);
    }
    const write = message(desc);
    return (held) => write(held as MessageValues);
  }
}

const IMPLICIT = 2;

/** Whether an unset field is left out of the JSON form; others are in it with their zero value, or as null. */
export function isLeftOut(field: DescField): boolean {
  if (exclusiveWith(field) !== undefined) return true;
  return (field.fieldKind === "scalar" || field.fieldKind === "enum") && field.presence !== IMPLICIT;
}

/** Messages with defaults on the prototype chain hold only what is set. */
function ownTest(field: DescField): string {
  const inherits = isLeftOut(field) && field.oneof === undefined;
  return inherits ? ` || !hasOwn(m, ${literal(field.localName)})` : "";
}

function unsetOf(field: DescField): unknown {
  switch (field.fieldKind) {
    case "scalar":
      return zeroOf(field.scalar);
    case "enum":
      return enumWriter(field.enum)?.(field.enum.values[0]?.number ?? 0);
    case "message":
      return null;
    case "list":
      return [];
    case "map":
      return {};
  }
}

function listWriter(write: Write): Write {
  return write === undefined ? undefined : (list) => (list as unknown[]).map(write);
}

function mapWriter(write: Write): Write {
  if (write === undefined) return undefined;
  return (value) => {
    const map = value as MessageValues;
    const written: MessageValues = {};
    for (const key of Object.keys(map)) setOwn(written, key, write(map[key]));
    return written;
  };
}

/** A plain JSON value as it is; JSON.stringify would make null of a number that JSON cannot hold. */
function finite(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw notFinite("google.protobuf.Struct");
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) for (const item of value) finite(item);
  else for (const key in value) finite((value as MessageValues)[key]);
  return value;
}

function enumWriter(desc: DescEnum): Write {
  if (desc.typeName === "google.protobuf.NullValue") return () => null;
  const names = new Map<unknown, string>();
  for (const value of desc.values) if (!names.has(value.number)) names.set(value.number, value.jsonName);
  return (number) => names.get(number) ?? number;
}

/**
 * The fields of the same message that cannot be set together with this one: those of its `oneof`, or of the rule
 * `(buf.validate.message).oneof` that names it. Undefined for a field that stands by itself.
 */
export function exclusiveWith(field: DescField): readonly DescField[] | undefined {
  const { oneof, parent } = field;
  const rule = optionOf(parent, messageRules).oneof.find(({ fields }) => fields.includes(field.name));
  const together = oneof?.fields ?? (rule && parent.fields.filter(({ name }) => rule.fields.includes(name)));
  return together?.filter((other) => other !== field);
}
