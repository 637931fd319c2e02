import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { compile, keyLiteral, literal } from "./codegen.ts";
import type { MessageValues } from "./values.ts";

/** A maker of empty messages, as `create` makes them without a look at an initializer. */
export function zeroMaker(desc: DescMessage): () => MessageValues {
  const empty = create(desc) as Message & MessageValues;
  // Presence on the prototype chain (proto2, editions): leave it to protobuf-es.
  if (Object.getPrototypeOf(empty) !== Object.prototype) return () => create(desc) as Message & MessageValues;
  const members = Object.keys(empty).map((name) => `${keyLiteral(name)}: ${zeroSource(name, empty[name])}`);
  return compile({ empty }, `() => ({ ${members.join(", ")} })`);
}

function zeroSource(name: string, value: unknown): string {
  if (Array.isArray(value)) return "[]";
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return `empty[${literal(name)}]`;
  return Object.hasOwn(value, "case") ? "{ case: undefined }" : "{}";
}
