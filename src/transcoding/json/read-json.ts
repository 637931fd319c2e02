import type { DescField, DescMessage, Registry } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import { zeroMaker } from "./empty-message.ts";
import { keyHint, objectHint } from "./hints.ts";
import { fieldsByKey, keyFinder, mapKey } from "./key-finder.ts";
import { jsonObject, wellKnownReader } from "./read-known.ts";
import { enumReader, type Read, scalarReader } from "./read-scalar.ts";
import { key as readKey, string } from "./read-string.ts";
import { skip } from "./read-structure.ts";
import { colon, endOf, enter, fail, next, quotedKey, type Scan, takeNull, unexpected } from "./scan.ts";
import { holdsPlainJson, type MessageValues, setOwn, takesNull } from "./values.ts";

/** Reads an object into `into`, or into a new message; null where it stands counts as unset fields. */
export type ReadMessage = (s: Scan, into?: MessageValues) => MessageValues;

export interface ReaderOptions {
  /** The messages that google.protobuf.Any may hold. */
  readonly registry: Registry;
  /** Lists that may be left out, but not be empty when they are there. */
  readonly notEmptyIfPresent?: (field: DescField) => boolean;
}

export interface JsonReader {
  /** The reader of a message in its JSON form, well-known types included. */
  message(desc: DescMessage): ReadMessage;
  /** The reader of one field's value, as a message holds it. */
  field(field: DescField): Read;
  /** The reader of a field's value, at the place where it stands, into its message. */
  member(field: DescField): ReadMember;
  /** The reader of one element of a list, null being none. */
  item(field: DescField & { fieldKind: "list" }): Read;
}

/** Reads a field's value into its message; `keyAt` is where its key stands. */
type ReadMember = (s: Scan, message: MessageValues, keyAt: number) => void;

/** Compiles readers from descriptors, each once. They throw what `isJsonError` knows. */
export function jsonReader(options: ReaderOptions): JsonReader {
  const compiled = new Map<DescMessage, ReadMessage>();
  const reader: JsonReader = { message, field: valueOf, member: placed, item: itemOf };
  return reader;

  function message(desc: DescMessage): ReadMessage {
    const known = compiled.get(desc);
    if (known !== undefined) return known;
    // A placeholder while the fields compile, for messages that hold themselves.
    let read: ReadMessage | undefined;
    compiled.set(desc, (s, into) => (read as ReadMessage)(s, into));
    read = wellKnownReader(desc, options.registry, reader) ?? objectReader(desc);
    compiled.set(desc, read);
    return read;
  }

  function objectReader(desc: DescMessage): ReadMessage {
    const zero = zeroMaker(desc);
    const reads = desc.fields.map(placed);
    const entries = [...fieldsByKey(desc)].map(([key, field]) => {
      const index = desc.fields.indexOf(field);
      return { key, index, read: reads[index] as ReadMember };
    });
    const find = keyFinder(entries);
    return (s, into) => {
      const target = into ?? zero();
      if (s.codes[s.at] !== 123) unexpected(s, `an object${objectHint(desc, s.codes[s.at] as number)}`);
      enter(s);
      let low = 0;
      let high = 0;
      let more: Set<number> | undefined;
      if (next(s) === 125) {
        s.at++;
        s.depth--;
        return target;
      }
      do {
        next(s);
        const keyAt = s.at;
        const entry = find(s);
        colon(s);
        if (entry === undefined) {
          passUnknown(s, keyAt, desc);
          continue;
        }
        const { index } = entry;
        if (index < 32) {
          if ((low & (1 << index)) !== 0) twice(s, keyAt);
          low |= 1 << index;
        } else if (index < 64) {
          if ((high & (1 << index)) !== 0) twice(s, keyAt);
          high |= 1 << index;
        } else {
          more ??= new Set();
          if (more.has(index)) twice(s, keyAt);
          more.add(index);
        }
        entry.read(s, target, keyAt);
      } while (!endOf(s, 125, "}"));
      return target;
    };
  }

  /** How a field's value gets from the text into its message. */
  function placed(field: DescField): ReadMember {
    const { localName } = field;
    if (field.fieldKind === "list") {
      const readItem = listItem(field);
      const filled = options.notEmptyIfPresent?.(field) === true;
      return (s, target) => {
        const from = s.at;
        const list = takeNull(s) ? undefined : (readItem(s) as unknown[]);
        if (filled && !list?.length) fail(from, "may be left out, but not be empty");
        if (list !== undefined) target[localName] = list;
      };
    }
    const read = valueOf(field);
    const keepsNull = field.fieldKind !== "map" && takesNull(field);
    const { oneof } = field;
    if (oneof === undefined) {
      return (s, target) => {
        if (keepsNull || !takeNull(s)) target[localName] = read(s);
      };
    }
    const group = oneof.localName;
    return (s, target, keyAt) => {
      if (!keepsNull && takeNull(s)) return;
      const set = (target[group] as { case?: string }).case;
      if (set !== undefined && set !== localName) {
        const other = oneof.fields.find((member) => member.localName === set)?.jsonName;
        fail(keyAt, `only one of ${JSON.stringify(other)} and ${JSON.stringify(field.jsonName)} may be set`);
      }
      target[group] = { case: localName, value: read(s) };
    };
  }

  function valueOf(field: DescField): Read {
    switch (field.fieldKind) {
      case "scalar":
        return scalarReader(field.scalar, field.longAsString);
      case "enum":
        return enumReader(field.enum);
      case "message":
        return messageValue(field, field.message);
      case "list":
        return listItem(field);
      case "map":
        return mapReader(field);
    }
  }

  function messageValue(field: DescField, desc: DescMessage): Read {
    const read = message(desc);
    if (holdsPlainJson(field)) return jsonObject;
    const value = desc.fields[0];
    if (
      field.fieldKind === "message" &&
      field.oneof === undefined &&
      isWrapperDesc(desc) &&
      value?.fieldKind === "scalar"
    ) {
      return scalarReader(value.scalar, value.longAsString);
    }
    return (s) => read(s);
  }

  function itemOf(field: DescField & { fieldKind: "list" }): Read {
    let read: Read;
    if (field.listKind === "scalar") read = scalarReader(field.scalar, field.longAsString);
    else if (field.listKind === "enum") read = enumReader(field.enum);
    else read = messageValue(field, field.message);
    const keepsNull = takesNull(field);
    return (s) => {
      if (next(s) === 110 && !keepsNull) fail(s.at, "a list may not hold null");
      return read(s);
    };
  }

  function listItem(field: DescField & { fieldKind: "list" }): Read {
    const read = itemOf(field);
    return (s) => {
      if (s.codes[s.at] !== 91) unexpected(s, "a list");
      enter(s);
      const list: unknown[] = [];
      if (next(s) === 93) {
        s.at++;
        s.depth--;
        return list;
      }
      do list.push(read(s));
      while (!endOf(s, 93, "]"));
      return list;
    };
  }

  function mapReader(field: DescField & { fieldKind: "map" }): Read {
    let read: Read;
    if (field.mapKind === "scalar") read = scalarReader(field.scalar, false);
    else if (field.mapKind === "enum") read = enumReader(field.enum);
    else read = messageValue(field, field.message);
    const keepsNull = takesNull(field);
    const keyOf = mapKey(field);
    return (s) => {
      if (s.codes[s.at] !== 123) unexpected(s, "an object");
      enter(s);
      const map: MessageValues = {};
      if (next(s) === 125) {
        s.at++;
        s.depth--;
        return map;
      }
      do {
        next(s);
        const keyAt = s.at;
        const key = keyOf(readKey(s), keyAt);
        if (Object.hasOwn(map, key)) twice(s, keyAt);
        if (colon(s) === 110 && !keepsNull) fail(s.at, "a map may not hold null");
        setOwn(map, key, read(s));
      } while (!endOf(s, 125, "}"));
      return map;
    };
  }
}

/** Fails because a key has come already. */
export function twice(s: Scan, keyAt: number): never {
  s.at = keyAt;
  fail(keyAt, `${quotedKey(string(s))} occurs twice`);
}

/** Passes over the value of a key that no field has, or fails. */
export function passUnknown(s: Scan, keyAt: number, desc: DescMessage): void {
  const valueAt = s.at;
  s.at = keyAt;
  const key = string(s);
  if (s.ignoreUnknown || (key === "@type" && s.depth === s.typedDepth)) {
    s.at = valueAt;
    skip(s);
    return;
  }
  fail(keyAt, `unknown field ${quotedKey(key)}${keyHint(desc, key)}`);
}
