import type { JsonValue } from "@bufbuild/protobuf";

/**
 * The value that a person typed: `true`, `false` and numbers that are written as they are kept are what they look like, `[…]` is a list;
 * all else is text, and so is what is quoted.
 */
export function typedValue(text: string): JsonValue {
  if (text === "true" || text === "false") return text === "true";
  const value = Number(text);
  if (Number.isFinite(value) && String(value) === text) return value;
  if (/^\[.*\]$/s.test(text)) {
    try {
      return JSON.parse(text) as JsonValue;
    } catch {
      return text;
    }
  }
  return /^".*"$/s.test(text) ? text.slice(1, -1) : text;
}

/** A value as it can be typed. */
export function typeableText(value: JsonValue): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return typedValue(value) === value ? value : `"${value}"`;
}
