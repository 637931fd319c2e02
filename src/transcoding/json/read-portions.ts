import type { DescMessage } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { not_empty_if_present } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { optionOf } from "../../proto-option.ts";
import { addBytes, type FieldBounds, messageBoundsOf } from "../../wire/message-limits.ts";
import { fieldsByKey, keyFinder } from "./key-finder.ts";
import { passValue } from "./pass-value.ts";
import { checkUnknown, type JsonReader, twice } from "./read-json.ts";
import { colon, endOf, enter, next, type Scan, unexpected } from "./scan.ts";
import { type MessageValues, takesNull, zeroMaker } from "./values.ts";

const portionItems = 50;

/**
 * Reads a message as `reader.message` does, and stops between its members, and now and then within its lists of messages.
 * Undefined for messages that have a JSON form of their own.
 */
export function portionReader(
  reader: JsonReader,
  desc: DescMessage,
): ((s: Scan, into?: MessageValues) => Generator<undefined, MessageValues>) | undefined {
  const bounds = messageBoundsOf(desc);
  if (hasCustomJsonRepresentation(desc) || bounds.tree !== undefined) return undefined;
  const zero = zeroMaker(desc);
  const entries = [...fieldsByKey(desc)].map(([key, field]) => {
    const of = bounds.byNumber.get(field.number) as FieldBounds;
    return { key, field, read: reader.member(of), items: itemsOf(of) };
  });
  const find = keyFinder(entries);

  return function* portions(s, into) {
    addBytes(s.tally, bounds.bytes);
    const target = into ?? zero();
    if (s.codes[s.at] !== 123) unexpected(s, "an object");
    const seen = new Set<unknown>();
    enter(s);
    if (next(s) === 125) {
      s.at++;
      s.depth--;
      return target;
    }
    do {
      next(s);
      const keyAt = s.at;
      const entry = find(s);
      colon(s);
      if (entry === undefined) {
        checkUnknown(s, keyAt, desc);
        yield* passValue(s);
        continue;
      }
      if (seen.has(entry.field)) twice(s, keyAt);
      seen.add(entry.field);
      if (entry.items !== undefined && s.codes[s.at] === 91) target[entry.field.localName] = yield* entry.items(s);
      else entry.read(s, target, keyAt);
      yield;
    } while (!endOf(s, 125, "}"));
    return target;
  };

  function itemsOf(bounds: FieldBounds): ((s: Scan) => Generator<undefined, unknown[]>) | undefined {
    const { field } = bounds;
    if (field.fieldKind !== "list" || field.message === undefined) return undefined;
    if (takesNull(field) || optionOf(field, not_empty_if_present)) return undefined;
    const read = reader.item(bounds);
    return function* items(s) {
      const list: unknown[] = [];
      s.tally.path.push(bounds);
      enter(s);
      if (next(s) === 93) {
        s.at++;
        s.depth--;
        s.tally.path.pop();
        return list;
      }
      do {
        list.push(read(s, list.length + 1));
        if (list.length % portionItems === 0) yield;
      } while (!endOf(s, 93, "]"));
      s.tally.path.pop();
      return list;
    };
  }
}
