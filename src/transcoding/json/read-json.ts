import { type DescField, type DescMessage, type Registry, ScalarType } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import {
  addBytes,
  countElement,
  entryBytes,
  type FieldBounds,
  innerNodes,
  leaveNode,
  type MessageBounds,
  messageBoundsOf,
  nodesOf,
  numberBytes,
  stringBytes,
} from "../../wire/message-limits.ts";
import { keyHint, objectHint } from "./hints.ts";
import { fieldsByKey, keyFinder, mapKey } from "./key-finder.ts";
import { skip } from "./pass-value.ts";
import { jsonObject, wellKnownReader } from "./read-known.ts";
import { enumReader, type Read, scalarReader, secondsReader } from "./read-scalar.ts";
import { key as readKey, string } from "./read-string.ts";
import { colon, endOf, enter, fail, next, quotedKey, type Scan, takeNull, unexpected } from "./scan.ts";
import { holdsPlainJson, type MessageValues, setOwn, takesNull, zeroMaker } from "./values.ts";

/** Reads an object into `into`, or into a new message; null where it stands counts as unset fields. */
export type ReadMessage = (s: Scan, into?: MessageValues) => MessageValues;

export interface ReaderOptions {
  /** The messages that google.protobuf.Any may hold. */
  readonly registry: Registry;
  /** Lists that may be left out, but not be empty when they are there. */
  readonly notEmptyIfPresent?: (field: DescField) => boolean;
  /** Names that a field has beside its own. */
  readonly otherNames?: (field: DescField) => readonly string[];
  /** Whether a number of seconds may be written as a duration. */
  readonly takesDurations?: (field: DescField) => boolean;
}

export interface JsonReader {
  /** The reader of a message in its JSON form, well-known types included. */
  message(desc: DescMessage): ReadMessage;
  /** The reader of one field's value, as a message holds it. */
  field(field: DescField): Read;
  /** The reader of a field's value, at the place where it stands, into its message. */
  member(bounds: FieldBounds): ReadMember;
  /** The reader of one element of a list, null being none. */
  item(bounds: FieldBounds): ReadItem;
}

/** Reads an element of a list and counts it; this is the how manieth. */
type ReadItem = (s: Scan, count: number) => unknown;

/** Reads a field's value into its message; `keyAt` is where its key stands. */
type ReadMember = (s: Scan, message: MessageValues, keyAt: number) => void;

/**
 * Compiles readers from descriptors, each once. They count what they make, before they make it.
 * They throw what `isJsonError` knows, and code 3 or 8 for what holds too much.
 */
export function jsonReader(options: ReaderOptions): JsonReader {
  const compiled = new Map<MessageBounds, ReadMessage>();
  const reader: JsonReader = {
    message: (desc) => message(messageBoundsOf(desc)),
    field: (field) => valueOf(fieldBoundsOf(field)),
    member: placed,
    item: itemOf,
  };
  return reader;

  function message(bounds: MessageBounds): ReadMessage {
    const known = compiled.get(bounds);
    if (known !== undefined) return known;
    // A placeholder while the fields compile, for messages that hold themselves.
    let read: ReadMessage | undefined;
    compiled.set(bounds, (s, into) => (read as ReadMessage)(s, into));
    read = wellKnownReader(bounds.desc, options.registry, reader) ?? counted(bounds, objectReader(bounds));
    compiled.set(bounds, read);
    return read;
  }

  /** The same reader, which counts the message among those of its tree. */
  function counted(bounds: MessageBounds, read: ReadMessage): ReadMessage {
    if (bounds.tree === undefined) return read;
    return (s, into) => {
      const around = s.nodes;
      s.nodes = nodesOf(s.tally, bounds, around);
      const value = read(s, into);
      leaveNode(bounds, s.nodes);
      s.nodes = around;
      return value;
    };
  }

  function objectReader(bounds: MessageBounds): ReadMessage {
    const { desc } = bounds;
    const zero = zeroMaker(desc);
    const reads = bounds.fields.map(placed);
    const others = desc.fields.flatMap(
      (field) => options.otherNames?.(field).map((key) => [key, field] as const) ?? [],
    );
    const entries = [...fieldsByKey(desc), ...others].map(([key, field]) => {
      const index = desc.fields.indexOf(field);
      return { key, index, read: reads[index] as ReadMember };
    });
    const find = keyFinder(entries);
    return (s, into) => {
      addBytes(s.tally, bounds.bytes);
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
          checkUnknown(s, keyAt, desc);
          skip(s);
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
  function placed(bounds: FieldBounds): ReadMember {
    const { field } = bounds;
    const { localName } = field;
    if (field.fieldKind === "list") {
      const readList = named(bounds, valueOf(bounds));
      const filled = options.notEmptyIfPresent?.(field) === true;
      return (s, target) => {
        const from = s.at;
        const list = takeNull(s) ? undefined : (readList(s) as unknown[]);
        if (filled && !list?.length) fail(from, "may be left out, but not be empty");
        if (list !== undefined) target[localName] = list;
      };
    }
    const read = named(bounds, valueOf(bounds));
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

  function valueOf(bounds: FieldBounds): Read {
    const { field } = bounds;
    if (field.fieldKind === "scalar") {
      const read = scalarValue(field.scalar, field.longAsString);
      return options.takesDurations?.(field) === true ? secondsReader(read) : read;
    }
    if (field.fieldKind === "enum") return countedNumber(enumReader(field.enum));
    if (field.fieldKind === "message") return messageValue(bounds, field.message);
    return field.fieldKind === "list" ? listReader(bounds) : mapReader(bounds, field);
  }

  /** The same reader, whose errors name its field. */
  function named(bounds: FieldBounds, read: Read): Read {
    const { fieldKind } = bounds.field;
    if (fieldKind === "scalar" || fieldKind === "enum") return read;
    return (s) => {
      s.tally.path.push(bounds);
      const value = read(s);
      s.tally.path.pop();
      return value;
    };
  }

  function messageValue(bounds: FieldBounds, desc: DescMessage): Read {
    const { field } = bounds;
    const readMessage = message(bounds.below() as MessageBounds);
    const read: Read = holdsPlainJson(field) ? jsonObject : (s) => readMessage(s);
    if (bounds.valuesMax > 0) {
      return (s) => {
        const around = s.nodes;
        s.nodes = innerNodes(bounds, around);
        const value = read(s);
        s.nodes = around;
        return value;
      };
    }
    const value = desc.fields[0];
    if (
      field.fieldKind === "message" &&
      field.oneof === undefined &&
      isWrapperDesc(desc) &&
      value?.fieldKind === "scalar"
    ) {
      return scalarValue(value.scalar, value.longAsString);
    }
    return read;
  }

  function itemOf(bounds: FieldBounds): ReadItem {
    const field = bounds.field as DescField & { fieldKind: "list" };
    let read: Read;
    if (field.listKind === "scalar") read = scalarValue(field.scalar, field.longAsString);
    else if (field.listKind === "enum") read = countedNumber(enumReader(field.enum));
    else read = messageValue(bounds, field.message);
    const keepsNull = takesNull(field);
    return (s, count) => {
      if (next(s) === 110 && !keepsNull) fail(s.at, "a list may not hold null");
      const { tally } = s;
      countElement(tally, bounds, count);
      tally.path.push(count - 1);
      const item = read(s);
      tally.path.pop();
      return item;
    };
  }

  function listReader(bounds: FieldBounds): Read {
    const read = itemOf(bounds);
    return (s) => {
      if (s.codes[s.at] !== 91) unexpected(s, "a list");
      enter(s);
      const list: unknown[] = [];
      if (next(s) === 93) {
        s.at++;
        s.depth--;
        return list;
      }
      do list.push(read(s, list.length + 1));
      while (!endOf(s, 93, "]"));
      return list;
    };
  }

  function mapReader(bounds: FieldBounds, field: DescField & { fieldKind: "map" }): Read {
    let read: Read;
    if (field.mapKind === "scalar") read = scalarValue(field.scalar, false);
    else if (field.mapKind === "enum") read = countedNumber(enumReader(field.enum));
    else read = messageValue(bounds, field.message);
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
      let count = 0;
      do {
        next(s);
        countElement(s.tally, bounds, ++count);
        const keyAt = s.at;
        const key = keyOf(readKey(s), keyAt);
        addBytes(s.tally, entryBytes + stringBytes + s.at - keyAt);
        if (Object.hasOwn(map, key)) twice(s, keyAt);
        if (colon(s) === 110 && !keepsNull) fail(s.at, "a map may not hold null");
        setOwn(map, key, read(s));
      } while (!endOf(s, 125, "}"));
      return map;
    };
  }
}

function fieldBoundsOf(field: DescField): FieldBounds {
  return messageBoundsOf(field.parent).fields[field.parent.fields.indexOf(field)] as FieldBounds;
}

function scalarValue(scalar: ScalarType, longAsString: boolean): Read {
  const read = scalarReader(scalar, longAsString);
  if (scalar !== ScalarType.STRING && scalar !== ScalarType.BYTES) return countedNumber(read);
  return (s) => {
    const from = s.at;
    const value = read(s);
    addBytes(s.tally, s.at - from + stringBytes);
    return value;
  };
}

const countedNumber =
  (read: Read): Read =>
  (s) => {
    addBytes(s.tally, numberBytes);
    return read(s);
  };

/** Fails because a key has come already. */
export function twice(s: Scan, keyAt: number): never {
  s.at = keyAt;
  fail(keyAt, `${quotedKey(string(s))} occurs twice`);
}

/** Fails where a key that no field has is refused; else its value is to be passed over. */
export function checkUnknown(s: Scan, keyAt: number, desc: DescMessage): void {
  const valueAt = s.at;
  s.at = keyAt;
  const key = string(s);
  if (s.ignoreUnknown || (key === "@type" && s.depth === s.typedDepth)) {
    s.at = valueAt;
    return;
  }
  fail(keyAt, `unknown field ${quotedKey(key)}${keyHint(desc, key)}`);
}
