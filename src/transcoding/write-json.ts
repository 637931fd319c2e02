import type { DescEnum, DescField, DescMessage, Registry } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { holdsPlainJson, type Values } from "./values.ts";
import { wellKnownWriter } from "./write-known.ts";
import { quote, scalarWriter, type Write } from "./write-scalar.ts";

export type WriteMessage = (message: Values) => string;

export interface JsonWriter {
  /** The writer of a message in its JSON form; it also takes what `create` takes, members left out being unset. */
  message(desc: DescMessage): WriteMessage;
  /** The writer of one field's value, as a message holds it; undefined is an unset field. */
  field(field: DescField): Write;
}

/**
 * Compiles writers from descriptors, each once. Every field in the order of its declaration; unset message fields as
 * `null`, unset members of a oneof and unset `optional` scalars left out. `registry` knows what Any may hold.
 */
export function jsonWriter(registry: Registry): JsonWriter {
  const compiled = new Map<DescMessage, WriteMessage>();
  const writer: JsonWriter = { message, field };
  return writer;

  function field(of: DescField): Write {
    const write = valueOf(of);
    const unset = unsetText(of);
    return (value) => (value === undefined || value === null ? unset : write(value));
  }

  function message(desc: DescMessage): WriteMessage {
    const known = compiled.get(desc);
    if (known !== undefined) return known;
    // Stands in while the fields compile, for messages that hold themselves.
    let write: WriteMessage | undefined;
    compiled.set(desc, (value) => (write as WriteMessage)(value));
    write = wellKnownWriter(desc, registry, writer) ?? objectWriter(desc);
    compiled.set(desc, write);
    return write;
  }

  function objectWriter(desc: DescMessage): WriteMessage {
    // A comma stands before a field when something certainly stands before it, else it depends on the message.
    let before: "nothing" | "maybe" | "something" = "nothing";
    const members = desc.fields.map((field) => {
      const member = memberWriter(field, before);
      if (!leavesOut(field)) before = "something";
      else if (before === "nothing") before = "maybe";
      return member;
    });
    return (value) => {
      let out = "{";
      for (let i = 0; i < members.length; i++) out = (members[i] as Member)(out, value);
      return `${out}}`;
    };
  }

  type Member = (out: string, message: Values) => string;

  function memberWriter(field: DescField, before: "nothing" | "maybe" | "something"): Member {
    const { localName } = field;
    const key = `${quote(field.jsonName)}:`;
    const later = `,${key}`;
    const first = before === "something" ? later : key;
    const head = before === "maybe" ? (out: string) => (out.length === 1 ? key : later) : () => first;
    const write = valueOf(field);
    if (field.oneof !== undefined) {
      const group = field.oneof.localName;
      return (out, message) => {
        const choice = message[group] as { case?: string; value?: unknown } | undefined;
        return choice?.case === localName ? out + head(out) + write(choice.value) : out;
      };
    }
    if (leavesOut(field)) {
      return (out, message) => {
        const value = message[localName];
        // Messages with defaults on the prototype chain hold only what is set.
        if (value === undefined || value === null || !Object.hasOwn(message, localName)) return out;
        return out + head(out) + write(value);
      };
    }
    const unset = unsetText(field);
    return (out, message) => {
      const value = message[localName];
      return out + head(out) + (value === undefined || value === null ? unset : write(value));
    };
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
    if (holdsPlainJson(field)) return JSON.stringify;
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
    return (held) => write(held as Values);
  }
}

/** Whether a field that is unset is left out, rather than written as its zero value or `null`. */
function leavesOut(field: DescField): boolean {
  if (field.oneof !== undefined) return true;
  return (field.fieldKind === "scalar" || field.fieldKind === "enum") && field.presence !== IMPLICIT;
}

const IMPLICIT = 2;

function unsetText(field: DescField): string {
  switch (field.fieldKind) {
    case "scalar":
      return scalarWriter(field.scalar)(undefined);
    case "enum":
      return enumWriter(field.enum)(field.enum.values[0]?.number ?? 0);
    case "message":
      return "null";
    case "list":
      return "[]";
    case "map":
      return "{}";
  }
}

function listWriter(write: Write): Write {
  return (value) => {
    const list = value as unknown[];
    if (list.length === 0) return "[]";
    let out = `[${write(list[0])}`;
    for (let i = 1; i < list.length; i++) out += `,${write(list[i])}`;
    return `${out}]`;
  };
}

function mapWriter(write: Write): Write {
  return (value) => {
    const map = value as Values;
    let out = "{";
    for (const key of Object.keys(map)) {
      out += out.length === 1 ? quote(key) : `,${quote(key)}`;
      out += `:${write(map[key])}`;
    }
    return `${out}}`;
  };
}

function enumWriter(desc: DescEnum): Write {
  if (desc.typeName === "google.protobuf.NullValue") return () => "null";
  const names = new Map<unknown, string>();
  for (const value of desc.values) if (!names.has(value.number)) names.set(value.number, quote(value.jsonName));
  return (number) => names.get(number) ?? String(number);
}
