import type { DescMessage } from "@bufbuild/protobuf";
import type { Pace } from "../../event-loop.ts";
import { longFields, portionsOf, withoutFields } from "../../wire/large.ts";
import type { Values } from "./values.ts";
import type { JsonWriter } from "./write-json.ts";

/** The text of a message that holds long lists, made in slices between which others are served. */
export async function textInPortions(
  writer: JsonWriter,
  desc: DescMessage,
  message: Values,
  pace: Pace,
): Promise<string> {
  const long = longFields(desc, message);
  const plain = writer.message(desc)(withoutFields(message, long)) as Record<string, unknown>;
  const keys = new Map(long.map((field) => [field.jsonName, field]));
  const members: string[] = [];
  for (const key of Object.keys(plain)) {
    const field = keys.get(key);
    if (field === undefined) {
      const text = JSON.stringify(plain[key]);
      if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`);
      continue;
    }
    const parts: string[] = [];
    for (const { items, large } of portionsOf(field, message)) {
      parts.push(
        large && field.message !== undefined
          ? await textInPortions(writer, field.message, items[0] as Values, pace)
          : JSON.stringify(writer.field(field)(items)).slice(1, -1),
      );
      await pace();
    }
    const text = parts.join();
    members.push(`${JSON.stringify(key)}:${field.fieldKind === "list" ? `[${text}]` : text}`);
  }
  return `{${members.join()}}`;
}
