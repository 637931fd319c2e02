import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { zeroMaker } from "../json/empty-message.ts";
import { fieldsByKey } from "../json/key-finder.ts";
import { fail } from "../json/scan.ts";
import type { MessageValues } from "../json/values.ts";
import { type ReadText, textReader } from "./url-value.ts";

/** A field of a request that a part of the URL sets, reached through singular messages. */
export interface Target {
  /** Proto names joined by dots: the same for each spelling. */
  readonly id: string;
  /** JSON names joined by dots, for messages to people. */
  readonly path: string;
  /** The fields on the way, the one that is set last. */
  readonly fields: readonly DescField[];
  /** What a text means for the field; undefined when no text can say its values. */
  readonly read: ReadText | undefined;
  /** The message that holds the field, made on the way when there is none. */
  holder(root: MessageValues): MessageValues;
}

/** The field of a message that a part of a path of fields names. */
type Find = (message: DescMessage, name: string) => DescField | undefined;

const byKey: Find = (message, name) => fieldsByKey(message).get(name);

/**
 * Finds the target of these field names, which are JSON or proto names unless `find` reads them otherwise; returns the
 * DescMessage that lacks the name at `at` when there is none.
 */
export function findTarget(
  root: DescMessage,
  names: readonly string[],
  find: Find = byKey,
): Target | { lacking: DescMessage; at: number } {
  const fields: DescField[] = [];
  let message = root;
  for (const [i, name] of names.entries()) {
    const field = find(message, name);
    if (field === undefined) return { lacking: message, at: i };
    fields.push(field);
    if (i === names.length - 1) break;
    if (field.fieldKind !== "message" || hasCustomJsonRepresentation(field.message)) {
      return { lacking: message, at: i + 1 };
    }
    message = field.message;
  }
  const last = fields.at(-1);
  const makers = fields.slice(0, -1).map((field) => zeroMaker(field.message as DescMessage));
  return {
    id: fields.map((f) => f.name).join("."),
    path: fields.map((f) => f.jsonName).join("."),
    fields,
    read: last === undefined ? undefined : textReader(last),
    holder(start) {
      let at = start;
      for (const [i, make] of makers.entries()) at = step(at, fields[i] as DescField, make);
      return at;
    },
  };
}

function step(message: MessageValues, field: DescField, make: () => MessageValues): MessageValues {
  const held = valueIn(message, field);
  if (held !== undefined) return held as MessageValues;
  const made = make();
  setIn(message, field, made);
  return made;
}

/** The value of a field, undefined when it is unset. */
export function valueIn(message: MessageValues, field: DescField): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const choice = message[field.oneof.localName] as { case?: string; value?: unknown } | undefined;
  return choice?.case === field.localName ? choice.value : undefined;
}

/** Sets a field; fails when another member of its oneof is set. */
export function setIn(message: MessageValues, field: DescField, value: unknown): void {
  if (field.oneof === undefined) {
    message[field.localName] = value;
    return;
  }
  const set = (message[field.oneof.localName] as { case?: string }).case;
  if (set !== undefined && set !== field.localName) {
    const other = field.oneof.fields.find((member) => member.localName === set)?.jsonName;
    fail(0, `only one of ${JSON.stringify(other)} and ${JSON.stringify(field.jsonName)} may be set`);
  }
  message[field.oneof.localName] = { case: field.localName, value };
}
