import {
  clone,
  create,
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { batch, json_bytes_max, text_bytes_max, tree, values_max } from "#gen/belfry/limits/v1/limits_pb.ts";
import { type FieldRules, field as fieldRules } from "#gen/buf/validate/validate_pb.ts";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";
import { messageBoundsOf } from "../../src/wire/message-limits.ts";
import { nightly } from "../support/cases.ts";

/** A nightly run tries all; the gate every fourth, and of the worst letters every sixteenth in each text. */
const [lettersEvery, othersEvery] = nightly ? [1, 1] : [16, 4];

/** A request one of whose fields is at its bound. */
export interface Full {
  /** The field's place, and what it is filled with. */
  name: string;
  request: Message;
}

/** What is worst for one reader or another when it stands again and again. */
export const worst: Readonly<Record<string, string>> = {
  letters: "a",
  "cron steps": "*/1,",
  "cron ranges": "0-59/1,",
  "sections of templates": "{{#a}}",
  "closed sections": "{{#a}}{{/a}}",
  "unclosed tags": "{{{a",
  "tags that change": "{{=<% %>=}}",
  parentheses: "(",
  groups: "(a?)",
  brackets: "[",
  repetitions: "a{1,99}",
  alternatives: "a|",
  backslashes: "\\",
  "combining marks": "\u0301",
  "letters that NFC takes apart": "\uFB2C",
  "astral letters": "😀",
  NUL: "\0",
  "percent signs": "%",
  escapes: "%2F",
  underscores: "_",
  quotes: "\"'",
  markup: "<a&",
  points: "a.",
  spaces: " ",
  "line breaks": "\n",
  addresses: "a@b,",
  "parts of an address": "http://a/",
  "days of the week": "MON,",
  digits: "9",
  signs: "->",
  commas: ",",
};

type Values = Message & Record<string, unknown>;
/** What a field is filled with; `letters`: one of the worst, of which there are many. */
type Put = { name: string; value: unknown; letters?: true };

const requestBytesMax = 3.5 * 1024 * 1024;
const repeated = (letters: string, length: number) =>
  letters
    .repeat(Math.ceil(length / letters.length))
    .slice(0, length)
    .toWellFormed();

/** A text of these letters that is as long as the rules of its field let it be. */
function text(letters: string, rules: FieldRules | undefined): string {
  if (rules?.type.case !== "string") return repeated(letters, 255);
  const { maxLen, maxBytes, in: allowed } = rules.type.value;
  if (allowed.length > 0) return allowed[0] as string;
  if (maxBytes > 0n) {
    const times = Math.floor(Number(maxBytes) / Buffer.byteLength(letters));
    return letters.repeat(Math.max(1, times));
  }
  return [...letters.repeat(Math.ceil(Number(maxLen) / [...letters].length))].slice(0, Number(maxLen)).join("");
}

const rulesOf = (field: DescField) => (hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined);
const isNamed = (name: string, field: DescField) => field.message?.typeName === `google.protobuf.${name}`;
const times = <T>(count: number, of: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => of(i));

/** A request of each field at its bound, made of each of the worst letters, all else as in a request that succeeds. */
export function* fullRequests(desc: DescMessage, good: Message): Generator<Full> {
  const fieldName = /"field":"([^"]+)"/.exec(JSON.stringify(good, bigintsAsText))?.[1] ?? "name";
  yield* below(
    desc,
    (change) => {
      const request = clone(desc, good);
      change(request as Values);
      return request;
    },
    "",
    new Set(),
    fieldName,
  );
}

const bigintsAsText = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);

let tried = 0;

type Make = (change: (message: Values) => void) => Message;

function* below(
  desc: DescMessage,
  make: Make,
  path: string,
  around: Set<DescMessage>,
  fieldName: string,
): Generator<Full> {
  for (const field of desc.fields) {
    if (getOption(field, field_behavior).includes(FieldBehavior.OUTPUT_ONLY)) continue;
    const own = path === "" ? field.name : `${path}.${field.name}`;
    for (const { name, value, letters } of puts(field)) {
      for (const [kind, also] of choices(field, desc)) {
        tried += 1;
        if (tried % (letters && !kind.includes("REGEX") ? lettersEvery : othersEvery) !== 0) continue;
        const request = make((message) => {
          if (also !== undefined) also(message);
          set(message, field, value);
        });
        yield { name: `${own}${kind}: ${name}`, request };
      }
    }
    const inner = field.message;
    if (inner === undefined || inner.typeName.startsWith("google.") || around.has(inner)) continue;
    const within: Make = (change) =>
      make((message) => {
        const held = heldIn(message, field, fieldName);
        change(held as Values);
      });
    yield* below(inner, within, own, new Set([...around, inner]), fieldName);
  }
}

/** The message that a field holds, or the first of a list, made when there is none; of a tree it is always a new one. */
function heldIn(message: Values, field: DescField, fieldName: string): Message {
  const inner = field.message as DescMessage;
  const at =
    field.oneof === undefined
      ? message[field.localName]
      : (message[field.oneof.localName] as { case?: string; value?: unknown });
  const fresh = hasOption(inner, tree);
  if (field.fieldKind === "list") {
    const list = at as Message[];
    if (list.length === 0 || fresh) list[0] = filled(inner, fieldName);
    if (fresh) list[0] = create(inner);
    return list[0] as Message;
  }
  const known =
    field.oneof === undefined
      ? at
      : (at as { case?: string }).case === field.localName
        ? (at as { value: unknown }).value
        : undefined;
  if (known !== undefined && !fresh) return known as Message;
  const made = fresh ? create(inner) : filled(inner, fieldName);
  set(message, field, made);
  return made;
}

function set(message: Values, field: DescField, value: unknown): void {
  if (field.oneof === undefined) message[field.localName] = value;
  else message[field.oneof.localName] = { case: field.localName, value };
}

/** A message whose plain fields hold something that is likely to be taken. */
function filled(desc: DescMessage, fieldName: string): Message {
  const message = create(desc) as Values;
  for (const field of desc.fields) {
    if (getOption(field, field_behavior).includes(FieldBehavior.OUTPUT_ONLY)) continue;
    if (field.fieldKind === "scalar" && field.oneof === undefined) {
      if (field.scalar === ScalarType.STRING)
        message[field.localName] = /^(field|path)$/.test(field.name) ? fieldName : likely(field);
      else if (field.scalar === ScalarType.INT64) message[field.localName] = 1n;
    } else if (field.fieldKind === "enum" && field.oneof === undefined) message[field.localName] = 1;
    else if (field.fieldKind === "message" && isNamed("Value", field)) message[field.localName] = valueOf("a");
    else if (field.fieldKind === "map") message[field.localName] = { a: "b" };
  }
  return message;
}

function likely(field: DescField): string {
  const rules = rulesOf(field);
  if (rules?.type.case === "string" && rules.type.value.in.length > 0) return rules.type.value.in[0] as string;
  return /url$/.test(field.name) ? "http://127.0.0.1:9/" : "a";
}

/** For a value that stands beside an operation: every operation. */
function* choices(
  field: DescField,
  desc: DescMessage,
): Generator<[name: string, change: ((message: Values) => void) | undefined]> {
  const operation = desc.fields.find((each) => each.name === "operation" && each.enum !== undefined);
  if (operation?.enum === undefined || !isNamed("Value", field)) {
    yield ["", undefined];
    return;
  }
  for (const { name, number } of operation.enum.values.slice(1)) {
    yield [
      ` (${name})`,
      (message) => {
        message[operation.localName] = number;
      },
    ];
  }
}

const kinds = { string: "stringValue", number: "numberValue", boolean: "boolValue" } as const;

function valueOf(value: JsonValue): Message {
  const at = (kind: unknown) => ({ $typeName: "google.protobuf.Value", kind }) as unknown as Message;
  if (Array.isArray(value)) {
    return at({ case: "listValue", value: { $typeName: "google.protobuf.ListValue", values: value.map(valueOf) } });
  }
  if (typeof value === "object" && value !== null) {
    const fields = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, valueOf(each as JsonValue)]));
    return at({ case: "structValue", value: { $typeName: "google.protobuf.Struct", fields } });
  }
  return value === null
    ? at({ case: "nullValue", value: 0 })
    : at({ case: kinds[typeof value as keyof typeof kinds], value });
}

const nestedList = (levels: number): JsonValue => (levels === 0 ? 0 : [nestedList(levels - 1)]);

/** What a field is filled with. */
function* puts(field: DescField): Generator<Put> {
  const rules = rulesOf(field);
  switch (field.fieldKind) {
    case "scalar":
      if (field.scalar === ScalarType.STRING) {
        for (const [name, letters] of Object.entries(worst)) yield { name, value: text(letters, rules), letters: true };
      } else if (field.scalar === ScalarType.INT64) {
        for (const value of [-(2n ** 63n), 2n ** 63n - 1n, 1n]) yield { name: String(value), value };
      }
      return;
    case "map":
      yield* maps(rules);
      return;
    case "list":
      yield* lists(field, rules);
      return;
    case "message":
      if (isNamed("Value", field)) yield* values(field);
      else if (isNamed("Struct", field)) yield* structs(field);
      else if (isNamed("FieldMask", field)) {
        const paths = times(getOption(field, values_max), (i) => repeated(`a${i}.`, getOption(field, text_bytes_max)));
        yield { name: "paths", value: { $typeName: "google.protobuf.FieldMask", paths } };
      }
  }
}

const few = [
  "letters",
  "parentheses",
  "backslashes",
  "combining marks",
  "astral letters",
  "markup",
  "quotes",
  "repetitions",
];

function* maps(rules: FieldRules | undefined): Generator<Put> {
  const { keys, values: held, maxPairs = 0n } = rules?.type.case === "map" ? rules.type.value : {};
  for (const name of few) {
    const letters = worst[name] as string;
    const entries = times(Number(maxPairs), (i): [string, unknown] => {
      const key = text(letters, keys);
      return [`${i}${key}`.slice(0, key.length), text(letters, held)];
    });
    yield { name: `${maxPairs} of ${name}`, value: Object.fromEntries(entries) };
  }
}

function* lists(field: DescField & { fieldKind: "list" }, rules: FieldRules | undefined): Generator<Put> {
  const { message } = field;
  if (message !== undefined && hasOption(message, tree)) {
    yield* trees(message);
    return;
  }
  const bound = messageBoundsOf(field.parent).fields.find((each) => each.field === field);
  const most = getOption(field, batch) ? 50_000 : (bound?.max as number);
  if (field.scalar === ScalarType.STRING) {
    const items = rules?.type.case === "repeated" ? rules.type.value.items : undefined;
    yield { name: `${most} short ones`, value: times(most, (i) => `${i}`) };
    yield { name: `${most} equal ones`, value: times(most, () => "a") };
    for (const name of few) {
      const one = text(worst[name] as string, items);
      const count = Math.min(most, Math.floor(requestBytesMax / Buffer.byteLength(JSON.stringify(one))));
      yield { name: `${count} of ${name}`, value: times(count, () => one) };
    }
  } else if (field.enum !== undefined) {
    yield { name: `${most} numbers`, value: times(most, () => 1) };
    yield { name: `${most} undeclared numbers`, value: times(most, () => 99) };
  } else if (isNamed("Value", field)) {
    yield { name: `${most} numbers`, value: times(most, (i) => valueOf(i)) };
    for (const name of few) {
      const one = repeated(worst[name] as string, Math.floor(requestBytesMax / most / 8));
      yield { name: `${most} texts of ${name}`, value: times(most, (i) => valueOf(`${i}${one}`)) };
    }
  } else if (message !== undefined) {
    const one = filled(message, "name");
    yield { name: `${most} messages`, value: times(most, () => one) };
  }
}

/** As many clauses beside each other as there may be, and as many within each other. */
function* trees(message: DescMessage): Generator<Put> {
  const { nodesMax, depthMax } = getOption(message, tree);
  const leaf = message.fields.find(({ name }) => /^(filter|equals)$/.test(name));
  const wrap = message.fields.find(({ name, message: inner }) => /not|none/.test(name) && inner !== undefined);
  const one = create(message) as Values;
  if (leaf !== undefined) set(one, leaf, filled(leaf.message as DescMessage, "name"));
  yield { name: `${nodesMax} clauses`, value: times(nodesMax - 2, () => one) };
  if (wrap === undefined) return;
  const innerField = (wrap.message as DescMessage).fields[0] as DescField;
  let nested: Message = one;
  for (let i = 0; i < depthMax - 3; i++) {
    const holder = create(wrap.message as DescMessage) as Values;
    set(holder, innerField, nested);
    const outer = create(message) as Values;
    set(outer, wrap, holder);
    nested = outer;
  }
  yield { name: `${depthMax} deep`, value: times(Math.floor(nodesMax / depthMax), () => nested) };
}

function* values(field: DescField): Generator<Put> {
  const most = getOption(field, values_max) - 1;
  const bytesMax = getOption(field, text_bytes_max);
  for (const [name, letters] of Object.entries(worst)) {
    const value = valueOf(letters.repeat(Math.floor(bytesMax / Buffer.byteLength(letters))));
    yield { name, value, letters: true };
  }
  yield { name: `${most} numbers`, value: valueOf(times(most, (i) => i)) };
  const one = repeated("a", Math.min(bytesMax, Math.floor(requestBytesMax / most / 2)));
  yield { name: `${most} texts`, value: valueOf(times(most, (i) => `${i}${one}`)) };
  yield { name: "a nested list", value: valueOf(nestedList(25)) };
}

function* structs(field: DescField): Generator<Put> {
  const most = getOption(field, values_max);
  const bytesMax = getOption(field, json_bytes_max);
  yield { name: "numbers", value: { a: times(bytesMax / 2 - 8, () => 0) } };
  yield { name: "members", value: Object.fromEntries(times(bytesMax / 12, (i) => [`k${i}`, 0])) };
  yield { name: "values beyond the bound", value: { a: times(4 * most - 1, () => 0) } };
  yield { name: "a nested list", value: { a: nestedList(25) } };
  for (const name of few) {
    const letters = worst[name] as string;
    const length = JSON.stringify(letters).length - 2;
    yield {
      name,
      value: {
        a: repeated(letters, ((bytesMax - 16) / Math.max(length, Buffer.byteLength(letters))) * letters.length),
      },
    };
    const texts = times(Math.floor(bytesMax / (length + 8)), (i) => `${i}${letters}`);
    yield { name: `texts of ${name}`, value: { a: texts.slice(0, Math.floor(texts.length * 0.8)) } };
  }
}
