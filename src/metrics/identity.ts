import { hash } from "node:crypto";

// The bytes that are hashed are a stored format: docs/formats/ids.md.
const SERIES = 3;

/** The id of a series as users see it: URL-safe base64, padded, 28 characters. The same on every replica. */
export function seriesId(tenantId: string, entityId: Uint8Array, metric: string): string {
  const head = Buffer.concat([Buffer.of(SERIES), Buffer.from(tenantId.replaceAll("-", ""), "hex"), entityId]);
  const digest = hash("sha256", Buffer.concat([head, Buffer.from(metric)]), "buffer");
  return `${digest.subarray(0, 20).toString("base64url")}=`;
}
