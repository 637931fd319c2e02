import { hash } from "node:crypto";
import { type Labels, labelsBytes } from "./labels.ts";

// The bytes that are hashed are a stored format: docs/formats/ids.md.
const SERIES = 3;

/** The id of a series as users see it: URL-safe base64, padded, 28 characters. The same on every replica. */
export function seriesId(tenantId: string, entityId: Uint8Array, metric: string, labels?: Labels): string {
  const head = Buffer.concat([Buffer.of(SERIES), Buffer.from(tenantId.replaceAll("-", ""), "hex"), entityId]);
  const parts = [head, Buffer.from(metric)];
  // No metric's name holds NUL.
  if (labels !== undefined) parts.push(Buffer.of(0), labelsBytes(labels));
  const digest = hash("sha256", Buffer.concat(parts), "buffer");
  return `${digest.subarray(0, 20).toString("base64url")}=`;
}
