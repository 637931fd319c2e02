import { type DescField, type DescMessage, hasOption, ScalarType } from "@bufbuild/protobuf";
import { items_max, json_bytes_max, text_bytes_max } from "#gen/belfry/limits/v1/limits_pb.ts";
import { seconds } from "#gen/belfry/transcoding/v1/options_pb.ts";
import {
  type FieldRules,
  field as fieldRules,
  Ignore,
  type MapRules,
  message as messageRules,
  type RepeatedRules,
} from "#gen/buf/validate/validate_pb.ts";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";
import { optionOf } from "../../src/proto-option.ts";

type Rules = Record<string, unknown>;

/** What JSON Schema can say of a field's buf.validate rules: of the value itself, its items and its keys. */
export interface Constraints {
  readonly own: Record<string, unknown>;
  readonly items: Record<string, unknown>;
  readonly keys: Record<string, unknown>;
  /** Whether the field must be there: it is required, or its empty value breaks a rule. */
  readonly required: boolean;
  /** What the rules say that JSON Schema cannot, as sentences. */
  readonly sentences: readonly string[];
}

const implicit = 2;

/** Reads the rules of a field, google.api.field_behavior's REQUIRED among them. */
export function constraints(field: DescField): Constraints {
  const demanded = behaviors(field).includes(FieldBehavior.REQUIRED);
  const present = demanded ? notEmpty(field) : {};
  const wire = wireBounds(field);
  if (!hasOption(field, fieldRules)) {
    return { own: present, items: {}, keys: {}, required: demanded, sentences: wire.sentences };
  }
  const rules = optionOf(field, fieldRules);
  const { repeated, map } = { repeated: undefined, map: undefined, [rules.type.case ?? ""]: rules.type.value } as {
    repeated: RepeatedRules | undefined;
    map: MapRules | undefined;
  };
  const items = repeated?.items ?? map?.values;
  const own = words(rules);
  const filled = ["minLength", "minItems", "minProperties"].some((name) => Number(own[name] ?? 0) > 0);
  const always = field.presence === implicit || field.fieldKind === "list" || field.fieldKind === "map";
  return {
    own: { ...present, ...own, ...wire.own },
    items: items === undefined ? {} : words(items),
    keys: map?.keys === undefined ? {} : words(map.keys),
    required: demanded || rules.required || (filled && always && rules.ignore === Ignore.UNSPECIFIED),
    sentences: [...wire.sentences, ...bytes(rules), ...(items?.cel ?? []).map(each), ...rules.cel.map(it)],
  };
}

/** What the rules of a message as a whole say, as sentences. */
export function messageSentences(desc: DescMessage): string[] {
  return optionOf(desc, messageRules).cel.map(({ message }) => `${message[0]?.toUpperCase()}${message.slice(1)}.`);
}

/** What google.api.field_behavior says of a field. */
export function behaviors(field: DescField): readonly FieldBehavior[] {
  return hasOption(field, field_behavior) ? optionOf(field, field_behavior) : [];
}

const it = ({ message }: { message: string }) => `It ${message}.`;
const each = ({ message }: { message: string }) => `Each ${message}.`;

/** What the bounds of belfry.limits.v1 say of a field. */
function wireBounds(field: DescField): Pick<Constraints, "own" | "sentences"> {
  const [itemsMax, textBytesMax, jsonBytesMax] = [items_max, text_bytes_max, json_bytes_max].map((bound) =>
    optionOf(field, bound),
  );
  return {
    own: itemsMax ? { maxItems: itemsMax } : {},
    sentences: [
      ...(textBytesMax ? [`Texts in it have at most ${textBytesMax} bytes.`] : []),
      ...(jsonBytesMax ? [`At most ${jsonBytesMax} bytes as JSON.`] : []),
      ...(optionOf(field, seconds) ? ['Also a duration in whole seconds such as "1h30m" (units ms, s, m, h, d).'] : []),
    ],
  };
}

function bytes({ type }: FieldRules): string[] {
  return type.case === "string" && type.value.maxBytes > 0n ? [`At most ${type.value.maxBytes} bytes.`] : [];
}

/** An empty value of a field without presence is the same as none. */
function notEmpty(field: DescField): Record<string, unknown> {
  if (field.fieldKind === "list") return { minItems: 1 };
  if (field.fieldKind === "map") return { minProperties: 1 };
  return field.scalar === ScalarType.STRING && field.presence === implicit ? { minLength: 1 } : {};
}

function words({ type }: FieldRules): Record<string, unknown> {
  const rules = (type.value ?? {}) as Rules;
  switch (type.case) {
    case undefined:
    case "enum":
      return {};
    case "string":
      return texts(rules);
    case "repeated":
      return renamed(rules, { minItems: "minItems", maxItems: "maxItems", unique: "uniqueItems" });
    case "map":
      return renamed(rules, { minPairs: "minProperties", maxPairs: "maxProperties" });
    default:
      return bounds(rules);
  }
}

function texts(rules: Rules): Record<string, unknown> {
  const { in: one, notIn } = rules as { in: string[]; notIn: string[] };
  return {
    // A character has at least one byte.
    ...renamed(rules, { maxBytes: "maxLength" }),
    ...renamed(rules, { minLen: "minLength", maxLen: "maxLength", pattern: "pattern" }),
    ...(one.length === 0 ? {} : { enum: one }),
    ...(notIn.length === 0 ? {} : { not: { enum: notIn } }),
  };
}

/** Those of the rules that are set, by their name in JSON Schema. */
function renamed(rules: Rules, names: Record<string, string>): Record<string, unknown> {
  const set = Object.entries(names).filter(([name]) => Object.hasOwn(rules, name));
  return Object.fromEntries(set.map(([name, to]) => [to, plain(rules[name])]));
}

/** The bounds of a number; a 64-bit integer that is sent as a string has them, too, and JSON Schema overlooks it. */
function bounds(rules: Rules): Record<string, unknown> {
  const words: Record<string, string> = {
    gt: "exclusiveMinimum",
    gte: "minimum",
    lt: "exclusiveMaximum",
    lte: "maximum",
  };
  const limits = [rules.greaterThan, rules.lessThan] as { case?: string; value?: unknown }[];
  return Object.fromEntries(
    limits.flatMap((limit) => (limit?.case === undefined ? [] : [[words[limit.case], plain(limit.value)]])),
  );
}

function plain(value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}
