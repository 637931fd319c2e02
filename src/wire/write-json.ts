import { create, type DescMessage, type Message, toJson, toJsonString } from "@bufbuild/protobuf";
import type { Pace } from "../event-loop.ts";
import { longFields, portionsOf, withoutFields } from "./large.ts";

type Values = Record<string, unknown>;

/** The JSON of a message as Connect and gRPC write it, that of a large one made in slices between which others are served. */
export async function jsonOf(desc: DescMessage, message: Message, pace: Pace): Promise<string> {
  const values = message as unknown as Values;
  const long = longFields(desc, values);
  if (long.length === 0) return toJsonString(desc, message);
  const part = (some: Values) => Object.entries(toJson(desc, create(desc, some as never)) as object);
  const members = part(withoutFields(values, long)).map(
    ([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`,
  );
  for (const field of long) {
    const parts: string[] = [];
    for (const { items, large } of portionsOf(field, values)) {
      if (large && field.message !== undefined) parts.push(await jsonOf(field.message, items[0] as Message, pace));
      else for (const [, list] of part({ [field.localName]: items })) parts.push(JSON.stringify(list).slice(1, -1));
      await pace();
    }
    const text = parts.join();
    members.push(`${JSON.stringify(field.jsonName)}:${field.fieldKind === "list" ? `[${text}]` : text}`);
  }
  return `{${members.join()}}`;
}
