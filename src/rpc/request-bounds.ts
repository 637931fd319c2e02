import { type DescField, type DescMessage, isFieldSet, isMessage, type Message } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { json_bytes_max, text_bytes_max, text_kept_when_unchanged } from "#gen/belfry/limits/v1/limits_pb.ts";
import { optionOf } from "../proto-option.ts";
import { checkedApart, type FieldBounds, type MessageBounds, messageBoundsOf } from "../wire/message-limits.ts";
import { type Broken, fieldPath, memberOf, messagesIn } from "./constraint-rules.ts";

/** What a message and all in it break of the bounds that its proto file declares beside buf.validate: of bytes of JSON values. */
export function brokenByteBounds(desc: DescMessage, message: Message): Broken[] {
  const broken: Broken[] = [];
  walkBytes(desc, message, "", broken);
  return broken;
}

/** A field with a bound of bytes, or through which one is reached. A bound of 0 is none. */
interface Way {
  field: DescField;
  textBytesMax: number;
  jsonBytesMax: number;
  /** Whether the field itself has a bound. */
  bounded: boolean;
}

/** By message. Options are read once: reading one takes 20 µs, as long as the other checks of an item together. */
const ways = new Map<DescMessage, Way[]>();

function waysOf(desc: DescMessage): Way[] {
  let found = ways.get(desc);
  if (found === undefined) {
    found = desc.fields
      .filter((field) => leadsToBytes(field, new Set()))
      .map((field) => ({
        field,
        textBytesMax: optionOf(field, text_kept_when_unchanged) ? 0 : optionOf(field, text_bytes_max),
        jsonBytesMax: optionOf(field, json_bytes_max),
        bounded: hasBytes(field),
      }));
    ways.set(desc, found);
  }
  return found;
}

const hasBytes = (field: DescField) => optionOf(field, text_bytes_max) > 0 || optionOf(field, json_bytes_max) > 0;

function leadsToBytes(field: DescField, seen: Set<DescMessage>): boolean {
  if (hasBytes(field)) return true;
  const { message } = field;
  if (message === undefined || seen.has(message) || checkedApart(field)) return false;
  seen.add(message);
  return message.fields.some((each) => leadsToBytes(each, seen));
}

function walkBytes(desc: DescMessage, message: Message, path: string, broken: Broken[]): void {
  for (const way of waysOf(desc)) {
    const { field } = way;
    if (!isFieldSet(message, field)) continue;
    const own = fieldPath(path, field.jsonName);
    if (way.bounded) broken.push(...brokenValue(way, memberOf(field, message), own));
    else
      for (const [place, inner] of messagesIn(field, message))
        walkBytes(field.message as DescMessage, inner, own + place, broken);
  }
}

function brokenValue({ textBytesMax, jsonBytesMax }: Way, value: unknown, path: string): Broken[] {
  if (isMessage(value, ValueSchema) && value.kind.case === "stringValue" && value.kind.value.includes("\0")) {
    return [{ path, rule: "must not contain NUL", id: FieldRule.STRING_NOT_CONTAINS }];
  }
  if (textBytesMax > 0 && hasLongText(value, textBytesMax)) {
    return [{ path, rule: `must hold texts of at most ${textBytesMax} bytes`, id: FieldRule.SIZE }];
  }
  if (jsonBytesMax > 0 && Buffer.byteLength(JSON.stringify(value)) > jsonBytesMax) {
    return [{ path, rule: `must take at most ${jsonBytesMax} bytes as JSON`, id: FieldRule.SIZE }];
  }
  return [];
}

/** Whether a text in a value is longer: in a JSON value, and as well in the messages that stand for one. */
function hasLongText(value: unknown, bytesMax: number): boolean {
  if (typeof value === "string") return isLonger(value, bytesMax);
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some((each) => hasLongText(each, bytesMax));
  return Object.entries(value).some(([key, each]) => isLonger(key, bytesMax) || hasLongText(each, bytesMax));
}

const isLonger = (text: string, bytesMax: number) =>
  text.length > bytesMax || (text.length > bytesMax / 3 && Buffer.byteLength(text) > bytesMax);

/**
 * The first list, map, tree or JSON value of an item that holds more than it may. In requests these are counted before they are
 * decoded; there an item may hold 16 times as many, so that it fails alone.
 */
export function brokenCountBound(desc: DescMessage, item: Message): Broken | undefined {
  return countIn(messageBoundsOf(desc), item, "", { count: 0, depth: 0 });
}

/** Messages of a tree. */
interface Nodes {
  count: number;
  depth: number;
}

function countIn(bounds: MessageBounds, message: Message, path: string, around: Nodes): Broken | undefined {
  const { tree } = bounds;
  if (tree !== undefined) {
    around.count += 1;
    if (around.depth >= tree.depthMax)
      return { path, rule: `must not lie deeper than ${tree.depthMax} clauses`, id: FieldRule.SIZE };
    if (around.count > tree.nodesMax)
      return { path, rule: `must not be more than the ${tree.nodesMax}th clause`, id: FieldRule.SIZE };
    around.depth += 1;
  }
  const broken = countFields(bounds, message, path, around);
  if (tree !== undefined) around.depth -= 1;
  return broken;
}

function countFields({ fields }: MessageBounds, message: Message, path: string, around: Nodes): Broken | undefined {
  for (const each of fields) {
    const { field } = each;
    const { fieldKind } = field;
    if (fieldKind === "scalar" || fieldKind === "enum" || !isFieldSet(message, field)) continue;
    const own = fieldPath(path, field.jsonName);
    const value = memberOf(field, message) as object;
    const rule = countRule(each, value);
    if (rule !== undefined) return { path: own, rule };
    const below = each.below();
    if (below === undefined || below.desc.typeName.startsWith("google.protobuf.")) continue;
    for (const [place, inner] of messagesIn(field, message)) {
      const broken = countIn(below, inner, own + place, around);
      if (broken !== undefined) return broken;
    }
  }
  return undefined;
}

function countRule({ field, max, valuesMax }: FieldBounds, value: object): string | undefined {
  const { fieldKind } = field;
  if (fieldKind === "list" && (value as unknown[]).length > max) return tooMany("have", max, "items");
  if (fieldKind === "map" && Object.keys(value).length > max) return tooMany("have", max, "entries");
  if (valuesMax === 0) return undefined;
  const held = fieldKind === "list" ? (value as unknown[]) : [value];
  return held.some((each) => valuesIn(each, valuesMax) > valuesMax) ? tooMany("hold", valuesMax, "values") : undefined;
}

const tooMany = (verb: "have" | "hold", most: number, things: string) =>
  verb === "have" ? `must have at most ${most} ${things}` : `must hold at most ${most} ${things}`;

/** How many JSON values lie in an object or a message that stands for a value, as far as there are not more than `most`. */
function valuesIn(held: unknown, most: number): number {
  if (isMessage(held, ValueSchema)) {
    const { kind } = held;
    if (kind.case === "listValue") return 1 + sum(kind.value.values, most);
    return kind.case === "structValue" ? 1 + sum(Object.values(kind.value.fields), most) : 1;
  }
  if (typeof held !== "object" || held === null) return 0;
  const values: unknown[] = Array.isArray(held) ? held : Object.values(held);
  return values.length + sum(values, most);
}

function sum(values: readonly unknown[], most: number): number {
  let count = 0;
  for (const each of values) {
    count += valuesIn(each, most);
    if (count > most) return count;
  }
  return count;
}
