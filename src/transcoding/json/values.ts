import type { DescField } from "@bufbuild/protobuf";

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
