import { type DescField, getOption, hasOption } from "@bufbuild/protobuf";
import {
  type FieldRules,
  field as fieldRules,
  type MapRules,
  type RepeatedRules,
} from "#gen/buf/validate/validate_pb.ts";

type Rules = Record<string, unknown>;

/** What JSON Schema can say of a field's buf.validate rules: of the value itself, its items and its keys. */
export interface Constraints {
  readonly own: Record<string, unknown>;
  readonly items: Record<string, unknown>;
  readonly keys: Record<string, unknown>;
  /** Whether the field must be there. */
  readonly required: boolean;
}

/** Reads the rules of a field. */
export function constraints(field: DescField): Constraints {
  if (!hasOption(field, fieldRules)) return { own: {}, items: {}, keys: {}, required: false };
  const rules = getOption(field, fieldRules);
  const { repeated, map } = { repeated: undefined, map: undefined, [rules.type.case ?? ""]: rules.type.value } as {
    repeated: RepeatedRules | undefined;
    map: MapRules | undefined;
  };
  const items = repeated?.items ?? map?.values;
  return {
    own: words(rules),
    items: items === undefined ? {} : words(items),
    keys: map?.keys === undefined ? {} : words(map.keys),
    required: rules.required,
  };
}

function words({ type }: FieldRules): Record<string, unknown> {
  const rules = (type.value ?? {}) as Rules;
  switch (type.case) {
    case undefined:
      return {};
    case "string":
      return renamed(rules, { minLen: "minLength", maxLen: "maxLength", pattern: "pattern" });
    case "repeated":
      return renamed(rules, { minItems: "minItems", maxItems: "maxItems", unique: "uniqueItems" });
    case "map":
      return renamed(rules, { minPairs: "minProperties", maxPairs: "maxProperties" });
    default:
      return bounds(rules);
  }
}

/** Those of the rules that are set, by their name in JSON Schema. */
function renamed(rules: Rules, names: Record<string, string>): Record<string, unknown> {
  const set = Object.entries(names).filter(([name]) => Object.hasOwn(rules, name));
  return Object.fromEntries(set.map(([name, to]) => [to, plain(rules[name])]));
}

function bounds(rules: Rules): Record<string, unknown> {
  const words: Record<string, string> = {
    gt: "exclusiveMinimum",
    gte: "minimum",
    lt: "exclusiveMaximum",
    lte: "maximum",
  };
  const limits = [rules.greaterThan, rules.lessThan] as { case?: string; value?: unknown }[];
  return Object.fromEntries(
    // 64-bit integers are strings in JSON, which have no bounds.
    limits.flatMap((limit) =>
      limit?.case === undefined || typeof limit.value === "bigint" ? [] : [[words[limit.case], limit.value]],
    ),
  );
}

function plain(value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}
