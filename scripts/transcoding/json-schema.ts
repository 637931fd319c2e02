import type { DescEnum, DescField, DescMessage } from "@bufbuild/protobuf";
import { seconds, update_mask } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { message as messageRules, oneof as oneofRules } from "#gen/buf/validate/validate_pb.ts";
import { FieldBehavior } from "#gen/google/api/field_behavior_pb.ts";
import { optionOf } from "../../src/proto-option.ts";
import { exclusiveWith, isLeftOut } from "../../src/transcoding/json/write-json.ts";
import { fieldNamed, type Route } from "../../src/transcoding/routes/binding.ts";
import { behaviors, constraints, messageSentences } from "./constraints.ts";
import { duration, type JsonSchema, nullable, type Side, scalar, wellKnown } from "./forms.ts";
import type { Names } from "./names.ts";
import { commentOf, described } from "./texts.ts";

/** Describes messages, each once in `components.schemas`. */
export interface Schemas {
  /** A message, by reference where it has no JSON form of its own. */
  refer(desc: DescMessage, side: Side): JsonSchema;
  /** A field's values, by themselves. */
  value(field: DescField, side: Side): JsonSchema;
  /** The body of a route's requests. */
  body(route: Route): JsonSchema;
  /** All messages and enums that were referred to, by name. */
  readonly all: Record<string, JsonSchema>;
}

/** Fields that a body need not hold: the path does. */
type InPath = ReadonlySet<DescField>;
const none: InPath = new Set();

/** Describes messages in the forms that they have: as they are answered, sent, and changed. */
export function schemas(names: Names): Schemas {
  const all: Record<string, JsonSchema> = {};
  const known = new Map<DescMessage, Map<string, string>>();
  return { refer, value: valueOf, body, all };

  function refer(desc: DescMessage, side: Side): JsonSchema {
    const form = wellKnown(desc, side);
    if (form !== undefined) return form;
    const suffix = side === "update" ? "Update" : side === "request" && names.answered(desc) ? "Input" : "";
    const made = known.get(desc) ?? new Map<string, string>();
    known.set(desc, made);
    const name = made.get(suffix) ?? free(names.short(desc) + suffix);
    if (!made.has(suffix)) {
      made.set(suffix, name);
      // A placeholder while the fields are described, for messages that hold themselves.
      all[name] = {};
      all[name] = object(desc, side);
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function free(name: string): string {
    if (all[name] !== undefined) throw new Error(`two components of the OpenAPI document are called ${name}`);
    return name;
  }

  function body(route: Route): JsonSchema {
    const { method, body: which, variables } = route;
    const whole = which === "*";
    const field = whole ? undefined : (fieldNamed(method.input, which) as DescField);
    const desc = whole ? method.input : field?.message;
    const mask = optionOf(method, update_mask);
    const said = variables.flatMap(({ path }) => (whole ? [path[0]] : path[0] === which ? [path[1]] : []));
    if (desc === undefined || field?.fieldKind === "list" || field?.fieldKind === "map" || wellKnown(desc, "request"))
      return valueOf(field as DescField, "request");
    if (mask === "" && said.length === 0) return refer(desc, "request");
    const inPath = new Set(desc.fields.filter(({ name }) => said.includes(name)));
    const side = mask === "" || whole ? "request" : "update";
    const schema = object(desc, side, inPath, mask !== "" && whole);
    // Several bindings of one RPC may have different bodies.
    let name = `${method.name}Body`;
    for (let i = 2; all[name] !== undefined && JSON.stringify(all[name]) !== JSON.stringify(schema); i++)
      name = `${method.name}Body${i}`;
    all[name] = schema;
    return { $ref: `#/components/schemas/${name}` };
  }

  /** The schema of an object. `updates`: the messages in it are updated, not replaced. */
  function object(desc: DescMessage, side: Side, inPath = none, updates = false): JsonSchema {
    const hidden = side === "answer" ? FieldBehavior.INPUT_ONLY : undefined;
    const fields = desc.fields.filter((field) => hidden === undefined || !behaviors(field).includes(hidden));
    const required = fields.filter((field) => isAlwaysThere(field, side) && !inPath.has(field));
    const inner = (field: DescField): Side => {
      if (side === "answer") return side;
      return updates && field.fieldKind === "message" ? "update" : "request";
    };
    return {
      type: "object",
      ...described(commentOf(desc), ...(side === "answer" ? [] : messageSentences(desc))),
      properties: Object.fromEntries(fields.map((field) => [field.jsonName, of(field, inner(field), inPath)])),
      ...(required.length === 0 ? {} : { required: required.map(({ jsonName }) => jsonName) }),
      ...choices(desc, fields, side),
      ...(side === "answer" ? {} : { additionalProperties: false }),
    };
  }

  function of(field: DescField, side: Side, inPath: InPath): JsonSchema {
    const marks = behaviors(field);
    const schema = valueOf(field, side);
    const unset =
      field.fieldKind === "message" && exclusiveWith(field) === undefined && !isAlwaysThere(field, "request");
    const text = [commentOf(field), ...(side === "answer" ? [] : constraints(field).sentences)];
    if (side !== "answer" && inPath.has(field)) text.push("The path holds it; here it may be left out.");
    const outputOnly = side !== "answer" && marks.includes(FieldBehavior.OUTPUT_ONLY);
    return {
      ...(unset ? nullable(schema) : schema),
      ...described(...text, alone(field), outputOnly ? "Ignored in requests." : ""),
      ...(outputOnly ? { readOnly: true } : {}),
      ...(marks.includes(FieldBehavior.INPUT_ONLY) ? { writeOnly: true } : {}),
      ...(field.deprecated ? { deprecated: true } : {}),
    };
  }

  function valueOf(field: DescField, side: Side): JsonSchema {
    const { own, items, keys } = side === "answer" ? { own: {}, items: {}, keys: {} } : constraints(field);
    switch (field.fieldKind) {
      case "list":
        return { type: "array", items: { ...itemOf(field, side), ...items }, ...own };
      case "map": {
        const keyed = Object.keys(keys).length === 0 ? {} : { propertyNames: keys };
        return { type: "object", ...keyed, additionalProperties: { ...itemOf(field, side), ...items }, ...own };
      }
      default:
        return { ...itemOf(field, side), ...own };
    }
  }

  function itemOf(field: DescField, side: Side): JsonSchema {
    if (field.scalar !== undefined && side !== "answer" && optionOf(field, seconds)) return duration;
    if (field.scalar !== undefined) return scalar(field.scalar, side);
    if (field.enum !== undefined) return enumOf(field.enum, side);
    return refer(field.message as DescMessage, side);
  }

  function enumOf(desc: DescEnum, side: Side): JsonSchema {
    if (desc.typeName === "google.protobuf.NullValue") return { type: "null" };
    const name = names.short(desc);
    const told = desc.values.filter((value) => commentOf(value) !== "");
    all[name] ??= {
      type: "string",
      ...described(
        [commentOf(desc), ...told.map((each) => `- \`${each.jsonName}\`: ${commentOf(each)}`)].join("\n").trim(),
      ),
      enum: [...new Set(desc.values.map(({ jsonName }) => jsonName))],
    };
    const ref = { $ref: `#/components/schemas/${name}` };
    if (side === "answer") return ref;
    const numbers = [...new Set(desc.values.map(({ number }) => number))];
    return { anyOf: [ref, { type: "integer", enum: numbers }] };
  }
}

/** Whether a field is in every answer, or must be in every request. */
function isAlwaysThere(field: DescField, side: Side): boolean {
  if (side === "answer") return !isLeftOut(field);
  return side === "request" && constraints(field).required;
}

function alone(field: DescField): string {
  const others = exclusiveWith(field)?.map(({ jsonName }) => jsonName) ?? [];
  // Where all members exclude each other, the message says so.
  if (others.length === 0 || others.length + 1 === field.parent.fields.length) return "";
  return `Not together with ${others.join(", ")}.`;
}

/** What a schema says of fields that exclude each other. */
function choices(desc: DescMessage, fields: readonly DescField[], side: Side): JsonSchema {
  const groups = [
    ...desc.oneofs.map((oneof) => ({
      names: oneof.fields.map(({ name }) => name),
      must: optionOf(oneof, oneofRules),
    })),
    ...optionOf(desc, messageRules).oneof.map((rule) => ({ names: rule.fields, must: rule })),
  ];
  const [group, another] = groups;
  if (group === undefined || another !== undefined) return {};
  const members = fields.filter(({ name }) => group.names.includes(name));
  if (members.length === desc.fields.length) {
    return { ...(group.must.required ? { minProperties: 1 } : {}), maxProperties: 1 };
  }
  if (side !== "request" || !group.must.required) return {};
  return { oneOf: members.map(({ jsonName }) => ({ required: [jsonName] })) };
}
