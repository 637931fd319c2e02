import { create, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Pace } from "../event-loop.ts";
import { chunksOf, longFields, withoutFields } from "./chunked-lists.ts";

type Values = Record<string, unknown>;

/**
 * The bytes of a message, those of a large one made in slices between which others are served: messages that hold a part
 * of its fields each, one after the other, are the message (as parsers merge them).
 */
export async function binaryOf(desc: DescMessage, message: Message, pace: Pace): Promise<Uint8Array> {
  const values = message as unknown as Values;
  const long = longFields(desc, values);
  if (long.length === 0) return toBinary(desc, message);
  const parts = [toBinary(desc, create(desc, withoutFields(values, long) as never))];
  for (const field of long) {
    for (const { items, large } of chunksOf(field, values)) {
      if (large && field.message !== undefined) {
        const item = await binaryOf(field.message, items[0] as Message, pace);
        parts.push(new BinaryWriter().tag(field.number, WireType.LengthDelimited).bytes(item).finish());
      } else parts.push(toBinary(desc, create(desc, { [field.localName]: items } as never)));
      await pace();
    }
  }
  return Buffer.concat(parts);
}
