import type { DescField, DescMessage } from "@bufbuild/protobuf";

const known = new Map<DescMessage, boolean>();

/**
 * Whether a message, or one within it, has a field that the proto marks with `debug_redact`. What is wrong with the text
 * of such a message is reported without quoting it: a secret may stand where something else is expected.
 */
export function holdsRedacted(desc: DescMessage): boolean {
  let holds = known.get(desc);
  if (holds === undefined) {
    known.set(desc, false); // for messages that hold themselves
    holds = desc.fields.some(isRedacted);
    known.set(desc, holds);
  }
  return holds;
}

/** Whether a field, or what it holds, is so marked. */
export function isRedacted(field: DescField): boolean {
  if (field.proto.options?.debugRedact === true) return true;
  return field.message !== undefined && holdsRedacted(field.message);
}
