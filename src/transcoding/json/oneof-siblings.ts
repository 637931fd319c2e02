import { type DescField, getOption } from "@bufbuild/protobuf";
import { message as messageRules } from "#gen/buf/validate/validate_pb.ts";

/**
 * The fields of the same message that cannot be set together with this one: those of its `oneof`, or of the rule
 * `(buf.validate.message).oneof` that names it. Undefined for a field that stands by itself.
 */
export function exclusiveWith(field: DescField): readonly DescField[] | undefined {
  const { oneof, parent } = field;
  const rule = getOption(parent, messageRules).oneof.find(({ fields }) => fields.includes(field.name));
  const together = oneof?.fields ?? (rule && parent.fields.filter(({ name }) => rule.fields.includes(name)));
  return together?.filter((other) => other !== field);
}
