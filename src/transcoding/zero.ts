import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Values } from "./values.ts";

const CONSTANT = 0;
const LIST = 1;
const MAP = 2;
const ONEOF = 3;

/** A maker of empty messages, as `create` makes them without a look at an initializer. */
export function zeroMaker(desc: DescMessage): () => Values {
  const empty = create(desc) as Message & Values;
  // Presence on the prototype chain (proto2, editions): leave it to protobuf-es.
  if (Object.getPrototypeOf(empty) !== Object.prototype) return () => create(desc) as Message & Values;
  const members = Object.entries(empty).map(([name, value]) => ({ name, value, kind: kindOf(value) }));
  return () => {
    const message: Values = {};
    for (const { name, value, kind } of members) {
      if (kind === CONSTANT) message[name] = value;
      else if (kind === LIST) message[name] = [];
      else if (kind === MAP) message[name] = {};
      else message[name] = { case: undefined };
    }
    return message;
  };
}

function kindOf(value: unknown): number {
  if (Array.isArray(value)) return LIST;
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return CONSTANT;
  return Object.hasOwn(value, "case") ? ONEOF : MAP;
}
