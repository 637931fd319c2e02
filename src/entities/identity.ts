import { hash } from "node:crypto";

// The bytes that are hashed are a stored format: docs/formats/ids.md.
const ENTITY = 1;
const EVENT = 2;
const ID_BYTES = 20;

function lengthPrefixed(text: string): Buffer {
  const bytes = Buffer.from(text, "utf8");
  const prefix = Buffer.allocUnsafe(4);
  prefix.writeUInt32BE(bytes.length);
  return Buffer.concat([prefix, bytes]);
}

function digest(kind: number, tenantId: string, texts: string[]): Buffer {
  const tenant = Buffer.from(tenantId.replaceAll("-", ""), "hex");
  const input = Buffer.concat([Buffer.from([kind]), tenant, ...texts.map(lengthPrefixed)]);
  return hash("sha256", input, "buffer").subarray(0, ID_BYTES);
}

/** Dimensions in canonical order: by the code points of their keys. */
export function sortedDimensions(dimensions: Record<string, string>): [key: string, value: string][] {
  const entries = Object.entries(dimensions);
  if (entries.length < 2) return entries;
  return entries.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** The id of the entity with these dimensions: the same on every replica, 20 bytes. */
export function entityId(tenantId: string, dimensions: Record<string, string>): Buffer {
  return digest(ENTITY, tenantId, sortedDimensions(dimensions).flat());
}

/** The id of the event of this name on the entity with these dimensions, 20 bytes. */
export function eventId(tenantId: string, dimensions: Record<string, string>, name: string): Buffer {
  return digest(EVENT, tenantId, [...sortedDimensions(dimensions).flat(), name]);
}

/** The id as users see it: URL-safe base64, padded, 28 characters. */
export function idText(id: Buffer): string {
  return `${id.toString("base64url")}=`;
}

/** The bytes of an id as users write it; undefined when it cannot be one. */
export function parseId(text: string): Buffer | undefined {
  if (!/^[A-Za-z0-9_-]{27}=$/.test(text)) return undefined;
  const id = Buffer.from(text, "base64url");
  return idText(id) === text ? id : undefined;
}

const NAME_CHARACTERS_MAX = 255;

/** What an entity is called before a model names it: its dimensions as `key=value,key=value`, cut to the length of a name. */
export function nameFromDimensions(dimensions: Record<string, string>): string {
  const name = sortedDimensions(dimensions)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
  return name.length <= NAME_CHARACTERS_MAX ? name : [...name].slice(0, NAME_CHARACTERS_MAX).join("");
}
