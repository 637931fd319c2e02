import type { DescField } from "@bufbuild/protobuf";
import { create, type DescMessage, type Message } from "@bufbuild/protobuf";

/** A message or map as an object whose members are looked up by name. */
export type MessageValues = Record<string, unknown>;

/** Sets a member of its own, also when the name is `__proto__`. */
export function setOwn(target: MessageValues, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else target[key] = value;
}

/** Whether a field (or its items) holds google.protobuf.Struct, which protobuf-es keeps as a plain JSON object. */
export function holdsPlainJson(field: DescField): boolean {
  return field.message?.typeName === "google.protobuf.Struct" && field.parent.typeName !== "google.protobuf.Value";
}

/** Whether `null` is a value of the field (or of its items) rather than its absence. */
export function takesNull(field: DescField): boolean {
  return field.message?.typeName === "google.protobuf.Value" || field.enum?.typeName === "google.protobuf.NullValue";
}

/**
 * Makes a function of source text, with these values in reach by name. Objects that one literal makes get their layout
 * at once; adding the same members in a loop takes five times as long, and JSON.stringify reads them more slowly (see
 * bench/transcoding.ts at 13b9aed9). Everything in the text comes from descriptors and goes through `literal`.
 */
export function compile<T>(inReach: Record<string, unknown>, source: string): T {
  return new Function(...Object.keys(inReach), `"use strict"; return ${source};`)(...Object.values(inReach)) as T;
}

/** A name or text as source. */
export function literal(text: string): string {
  return JSON.stringify(text);
}

/** The source of an object literal's key, own member also for `__proto__`. */
export function keyLiteral(name: string): string {
  return name === "__proto__" ? `[${literal(name)}]` : literal(name);
}

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
