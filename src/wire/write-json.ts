import { create, type DescField, type DescMessage, type Message, toJson } from "@bufbuild/protobuf";
import type { Pace } from "../event-loop.ts";
import { chunksOf, longFields, withoutFields } from "./chunked-lists.ts";

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
export function jsonOf(desc: DescMessage, message: Message, pace: Pace): Promise<string> {
  return textInPortions(protobufForm, desc, message as unknown as Values, pace);
}

/** The text of a message, that of one with long lists made in slices between which others are served. */
export async function textInPortions(form: JsonForm, desc: DescMessage, message: Values, pace: Pace): Promise<string> {
  const long = longFields(desc, message);
  if (long.length === 0) return JSON.stringify(form.message(desc)(message));
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
