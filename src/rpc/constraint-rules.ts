import { type DescField, type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { seconds } from "#gen/belfry/transcoding/v1/options_pb.ts";
import type { BrokenRule } from "../errors.ts";
import { optionOf } from "../proto-option.ts";

/** A rule that a value breaks; the path is made of JSON names. */
export type Broken = BrokenRule;

const patterns = new Map<string, RegExp>();

// All patterns are in our proto files; the library's own engine takes several times as long.
function regexMatch(pattern: string, text: string): boolean {
  let compiled = patterns.get(pattern);
  if (compiled === undefined) {
    compiled = new RegExp(pattern, "u");
    patterns.set(pattern, compiled);
  }
  return compiled.test(text);
}

const validator = createValidator({ regexMatch });

/** The buf.validate rules of `schema` that a message breaks; empty when it is good. */
export function brokenRules(schema: DescMessage, message: Message): Broken[] {
  const parts = [brokenHere(schema, message, "")];
  // protovalidate 1.3.0 passes over rules within messages that hold messages of their own type, as clauses do.
  for (const [path, desc, inner] of repeatedBelow(schema, message, "")) parts.push(brokenHere(desc, inner, path));
  return parts.flat();
}

function brokenHere(schema: DescMessage, message: Message, path: string): Broken[] {
  const result = validated(schema, message);
  if (result.kind === "valid") return [];
  if (result.kind === "error") throw result.error;
  return result.violations.map((violation) => ({
    path: fieldPath(path, jsonPath(violation.field)),
    rule: ruleText(violation, schema),
    id: `FIELD_RULE_${violation.ruleId.replaceAll(".", "_").toUpperCase()}`,
  }));
}

/** Validates without stacks: the library throws what it finds, a stack takes 5 µs, and a batch may break rules 50,000 times. */
function validated(schema: DescMessage, message: Message) {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return validator.validate(schema, message);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** What the patterns of the proto files ask, in words. */
const patternWords: [pattern: string, words: string][] = [
  ["^\\P{Cc}*$", "must not contain control characters"],
  ["^(\\*\\.)?[A-Za-z0-9_]", "must be a host name, such as api.example.com or *.example.com"],
];

/** What a rule asks, so that it reads on after the path: protovalidate's own words where they do. */
function ruleText({ ruleId, message, field }: Violation, schema: DescMessage): string {
  const last = field.at(-1);
  switch (ruleId) {
    case "required":
      if (last?.kind !== "oneof") return "is required";
      return `must hold exactly one of ${last.fields.map(({ jsonName }) => jsonName).join(", ")}`;
    case "message.oneof": {
      const holder = field.findLast((part) => part.kind === "field")?.message ?? schema;
      const members = holder.fields.filter(({ name }) => message.split(/,? /).includes(name));
      return `must hold exactly one of ${members.map(({ jsonName }) => jsonName).join(", ")}`;
    }
    case "enum.defined_only": {
      const place = field.findLast((part) => part.kind === "field");
      const values = place?.enum?.values.map(({ name, number }) => `${name} (${number})`);
      return `must be one of ${values?.join(", ")}`;
    }
    case "string.min_len":
      return message.replace("must be at least 1 characters", "must not be empty");
    case "string.pattern":
      return patternWords.find(([pattern]) => message.includes(pattern))?.[1] ?? `must match ${message}`;
    case "string.not_contains":
      return message.includes("\0") ? "must not contain NUL" : message;
    case "repeated.min_items":
      return message.replace("must contain at least 1 item(s)", "must not be empty");
    case "repeated.unique":
      return "must not contain an item twice";
    case "map.min_pairs":
      return message.replace("map must be at least 1 entries", "must have at least 1 entry");
    case "map.max_pairs":
      return message.replace("map must be at most", "must have at most");
    case "string.not_in":
      return message.replace(/must not be in list \[(.*)\]/, "must not be $1");
    default:
      return inSeconds(field) ? `${message} (seconds)` : message;
  }
}

/** Tells whether a path leads to a number of seconds. */
function inSeconds(path: Path): boolean {
  const last = path.at(-1);
  return last?.kind === "field" && optionOf(last, seconds);
}

/** A path as the JSON form spells it, for example `events[3].dimensions["host"]`. */
function jsonPath(path: Path): string {
  let text = "";
  for (const part of path) {
    if (part.kind === "list_sub") text += `[${part.index}]`;
    else if (part.kind === "map_sub")
      text += `[${JSON.stringify(typeof part.key === "bigint" ? String(part.key) : part.key)}]`;
    else if (part.kind === "field") text = fieldPath(text, part.jsonName);
  }
  return text;
}

/** Two parts of a path as one. */
export function fieldPath(outer: string, inner: string): string {
  if (outer === "" || inner === "") return outer + inner;
  return inner.startsWith("[") ? outer + inner : `${outer}.${inner}`;
}

/** Fields through which a message of a type that repeats itself can be reached. */
const ways = new Map<DescMessage, DescField[]>();

function waysOf(desc: DescMessage): DescField[] {
  let found = ways.get(desc);
  if (found === undefined) {
    found = desc.fields.filter((field) => field.message !== undefined && reaches(field.message, repeatsItself));
    ways.set(desc, found);
  }
  return found;
}

function reaches(from: DescMessage, wanted: (desc: DescMessage) => boolean, seen = new Set<DescMessage>()): boolean {
  if (seen.has(from) || from.typeName.startsWith("google.")) return false;
  if (wanted(from)) return true;
  seen.add(from);
  return from.fields.some(({ message }) => message !== undefined && reaches(message, wanted, seen));
}

function repeatsItself(desc: DescMessage): boolean {
  return desc.fields.some(({ message }) => message !== undefined && reaches(message, (found) => found === desc));
}

function* repeatedBelow(
  desc: DescMessage,
  message: Message,
  path: string,
  above = false,
): Iterable<[path: string, desc: DescMessage, message: Message]> {
  const repeats = above || waysOf(desc).some(({ message: inner }) => inner !== undefined && repeatsItself(inner));
  for (const field of waysOf(desc)) {
    if (!isFieldSet(message, field)) continue;
    const inner = field.message as DescMessage;
    for (const [place, value] of messagesIn(field, message)) {
      const own = fieldPath(path, field.jsonName) + place;
      if (above) yield [own, inner, value];
      yield* repeatedBelow(inner, value, own, repeats);
    }
  }
}

/** The messages that a set field holds, each with its place in it (`[3]`, `["key"]`, or nothing). */
export function* messagesIn(field: DescField, message: Message): Iterable<[place: string, message: Message]> {
  const value = memberOf(field, message);
  if (field.fieldKind === "list") {
    for (const [index, item] of (value as Message[]).entries()) yield [`[${index}]`, item];
  } else if (field.fieldKind === "map") {
    for (const [key, item] of Object.entries(value as Record<string, Message>))
      yield [`[${JSON.stringify(key)}]`, item];
  } else {
    yield ["", value as Message];
  }
}

/** The value of a field, also when it is the set member of a oneof. */
export function memberOf(field: DescField, message: Message): unknown {
  const members = message as unknown as Record<string, unknown>;
  if (field.oneof === undefined) return members[field.localName];
  return (members[field.oneof.localName] as { value: unknown }).value;
}
