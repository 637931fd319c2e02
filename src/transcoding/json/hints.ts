import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { also_read_as, known_as, misplaced_key } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";
import { optionOf } from "../../proto-option.ts";
import { didYouMean } from "../did-you-mean.ts";
import { fieldsByKey } from "./key-finder.ts";

/** Says what would be right in place of a key that no field has: the field meant, the place it belongs to, or the choice there is. */
export function keyHint(desc: DescMessage, key: string): string {
  const { fields } = desc;
  const misplaced = optionOf(desc, misplaced_key).find((each) => each.key === key);
  if (misplaced !== undefined) return `; it belongs in ${misplaced.belongsIn}`;
  const names = (field: DescField) => [...optionOf(field, known_as), ...optionOf(field, also_read_as)];
  const known = fields.find((field) => names(field).includes(key.toLowerCase()));
  if (known !== undefined) return `; did you mean ${example(known)}?`;
  const [holder, other] = fields.filter((field) => holds(field, key));
  if (holder !== undefined && other === undefined) return `; did you mean ${within(holder, key)}?`;
  const keys = fields.map(({ jsonName }) => jsonName);
  return isChoice(desc) ? `; must be one of ${keys.join(", ")}` : didYouMean(key, keys);
}

/** A field's key, with its members where they are few and one is required: of another kind of clause nobody guesses them. */
function example({ jsonName, message }: DescField): string {
  const key = JSON.stringify(jsonName);
  const isRequired = (field: DescField) => optionOf(field, field_behavior).includes(FieldBehavior.REQUIRED);
  if (message === undefined || message.fields.length > 3 || !message.fields.some(isRequired)) return key;
  return `{${key}:{${message.fields.map((field) => `${JSON.stringify(field.jsonName)}:…`).join(",")}}}`;
}

/** Reads on after `an object` with an example, where a bare value stands for a message that names its kind: `{"stringVal":"…"}`. */
export function objectHint(desc: DescMessage, first: number): string {
  const kind = kinds.find(({ begins }) => begins.test(String.fromCharCode(first)));
  if (kind === undefined || !isChoice(desc)) return "";
  const field = desc.fields.find(({ scalar }) => scalar !== undefined && kind.holds(scalar));
  return field === undefined ? "" : ` such as {${JSON.stringify(field.jsonName)}:${kind.example}}`;
}

const isText = (scalar: ScalarType) => scalar === ScalarType.STRING;
const isTruth = (scalar: ScalarType) => scalar === ScalarType.BOOL;

/** How a bare value begins, and the scalars that it may be meant for. */
const kinds = [
  { begins: /"/, holds: isText, example: '"…"' },
  { begins: /[tf]/, holds: isTruth, example: "true" },
  { begins: /[-0-9]/, holds: (scalar: ScalarType) => !isText(scalar) && !isTruth(scalar), example: "1" },
];

/** Tells whether exactly one field of a message is chosen. */
function isChoice({ fields, oneofs }: DescMessage): boolean {
  return oneofs.length === 1 && oneofs[0]?.fields.length === fields.length;
}

function holds(field: DescField, key: string): boolean {
  const { message, fieldKind } = field;
  if (message === undefined || fieldKind === "map" || message.typeName.startsWith("google.")) return false;
  return fieldsByKey(message).has(key);
}

function within({ jsonName, fieldKind }: DescField, key: string): string {
  const inner = `{${JSON.stringify(key)}:…}`;
  return `{${JSON.stringify(jsonName)}:${fieldKind === "list" ? `[${inner}]` : inner}}`;
}
