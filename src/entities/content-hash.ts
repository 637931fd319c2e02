import { hash } from "node:crypto";

/** Rises when what is stored of the same model changes, so that known entities are written once more. */
const VERSION = "1";

/** What a model says of its entity, as 16 bytes: its metadata, whatever the order of their keys. */
export function contentHash(metadata: Record<string, unknown>): Buffer {
  return hash("sha256", VERSION + canonical(metadata), "buffer").subarray(0, 16);
}

function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  const object = value as Record<string, unknown>;
  const keys = Object.keys(object);
  if (keys.length > 1) keys.sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(object[key])}`).join()}}`;
}
