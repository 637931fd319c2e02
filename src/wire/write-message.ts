import { create, type DescField, type DescMessage, type Message, toBinary, toJson } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Pace } from "../event-loop.ts";

type Values = Record<string, unknown>;

/** Makes of messages, and of lists of their fields, what JSON.stringify is to write. */
interface JsonForm {
  message(desc: DescMessage): (message: Values) => unknown;
  field(field: DescField): (value: unknown) => unknown;
}

/** Protobuf's own form, without what is unset. */
const protobufForm: JsonForm = {
  message: (desc) => (message) => toJson(desc, create(desc, message as never)),
  field(field) {
    const write = protobufForm.message(field.parent);
    return (value) => (write({ [field.localName]: value }) as Values)[field.jsonName];
  },
};

/** The JSON of a message as Connect and gRPC write it, that of a large one made in slices between which others are served. */
export function messageJson(desc: DescMessage, message: Message, pace: Pace): string | Promise<string> {
  return textInPortions(protobufForm, desc, message as unknown as Values, pace);
}

/** The text of a message, that of one with long lists made in slices between which others are served. */
export function textInPortions(
  form: JsonForm,
  desc: DescMessage,
  message: Values,
  pace: Pace,
): string | Promise<string> {
  const long = longFields(desc, message);
  return long.length === 0 ? JSON.stringify(form.message(desc)(message)) : longText(form, desc, message, long, pace);
}

async function longText(
  form: JsonForm,
  desc: DescMessage,
  message: Values,
  long: LongField[],
  pace: Pace,
): Promise<string> {
  const plain = form.message(desc)(withoutFields(message, long)) as Values;
  const fields = new Map(long.map((field) => [field.jsonName, field]));
  const members: string[] = [];
  // A form may leave out the empty lists in place of the long ones.
  for (const key of new Set([...Object.keys(plain), ...fields.keys()])) {
    const field = fields.get(key);
    if (field === undefined) {
      const text = JSON.stringify(plain[key]);
      if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`);
      continue;
    }
    const parts: string[] = [];
    for (const { items, large } of chunksOf(field, message)) {
      parts.push(
        large && field.message !== undefined
          ? await textInPortions(form, field.message, items[0] as Values, pace)
          : JSON.stringify(form.field(field)(items)).slice(1, -1),
      );
      await pace();
    }
    const text = parts.join();
    members.push(`${JSON.stringify(key)}:${field.fieldKind === "list" ? `[${text}]` : text}`);
  }
  return `{${members.join()}}`;
}

/**
 * The bytes of a message, those of a large one made in slices between which others are served: messages that hold a part
 * of its fields each, one after the other, are the message (as parsers merge them).
 */
export function binaryOf(desc: DescMessage, message: Message, pace: Pace): Uint8Array | Promise<Uint8Array> {
  const values = message as unknown as Values;
  const long = longFields(desc, values);
  return long.length === 0 ? toBinary(desc, message) : longBinary(desc, values, long, pace);
}

async function longBinary(desc: DescMessage, values: Values, long: LongField[], pace: Pace): Promise<Uint8Array> {
  const parts = [toBinary(desc, create(desc, withoutFields(values, long) as never))];
  for (const field of long) {
    for (const { items, large } of chunksOf(field, values)) {
      if (large && field.message !== undefined) {
        const item = await binaryOf(field.message, items[0] as Message, pace);
        parts.push(new BinaryWriter().tag(field.number, WireType.LengthDelimited).bytes(item).finish());
      } else parts.push(toBinary(desc, create(desc, { [field.localName]: items } as never)));
      await pace();
    }
  }
  return Buffer.concat(parts);
}

type LongField = DescField & { fieldKind: "list" | "message" };

/** This many elements of a list are written at a time, and this many that are no messages. */
export const itemsAtOnce = 16;
export const valuesAtOnce = 2000;

/** The fields of a message in which long lists stand, so that it is written in portions; empty: it is written as one. */
export function longFields(desc: DescMessage, message: Values): LongField[] {
  return fieldsOf(desc).filter((field) => {
    const value = message[field.localName];
    if (value === undefined) return false;
    if (field.fieldKind === "message") return longFields(field.message, value as Values).length > 0;
    const list = value as unknown[];
    if (field.message === undefined) return list.length > valuesAtOnce;
    return list.length > itemsAtOnce || list.some((item) => longFields(field.message, item as Values).length > 0);
  });
}

const fields = new WeakMap<DescMessage, LongField[]>();

/** The fields in which much may stand; google's own types are written as they are. */
function fieldsOf(desc: DescMessage): LongField[] {
  let found = fields.get(desc);
  if (found === undefined) {
    const own = desc.typeName.startsWith("google.") ? [] : desc.fields;
    found = own.filter(
      (field): field is LongField =>
        field.fieldKind === "list" || (field.fieldKind === "message" && field.oneof === undefined),
    );
    fields.set(desc, found);
  }
  return found;
}

/** A message without these fields. */
export function withoutFields(message: Values, without: readonly LongField[]): Values {
  const empty = without.map(({ localName, fieldKind }) => [localName, fieldKind === "list" ? [] : undefined]);
  return { ...message, ...Object.fromEntries(empty) };
}

/** The elements of a list in portions; one that itself holds a long list comes alone, as does what is no list. */
export function* chunksOf(field: LongField, message: Values): Generator<{ items: unknown[]; large: boolean }> {
  if (field.fieldKind === "message") {
    yield { items: [message[field.localName]], large: true };
    return;
  }
  const list = message[field.localName] as unknown[];
  const { message: desc } = field;
  const most = desc === undefined ? valuesAtOnce : itemsAtOnce;
  let items: unknown[] = [];
  for (const item of list) {
    if (desc !== undefined && longFields(desc, item as Values).length > 0) {
      if (items.length > 0) yield { items, large: false };
      yield { items: [item], large: true };
      items = [];
    } else if (items.push(item) === most) {
      yield { items, large: false };
      items = [];
    }
  }
  if (items.length > 0) yield { items, large: false };
}
