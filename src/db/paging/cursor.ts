import { hash } from "node:crypto";
import type { ConnectError } from "@connectrpc/connect";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../../errors.ts";

const version = 3;
const checkBytes = 12;
const cursorCharsMax = 65_536;

/** Digest of all that decides a query's result, for its cursors. */
export function queryDigest(query: Uint8Array | string): Buffer {
  return hash("sha256", query, "buffer");
}

function checkOf(kind: string, tenantId: string, digest: Uint8Array, payload: Uint8Array): Buffer {
  const owner = JSON.stringify([version, kind, tenantId, Buffer.from(digest).toString("hex")]);
  return hash("sha256", Buffer.concat([Buffer.from(owner), payload]), "buffer").subarray(0, checkBytes);
}

/**
 * Opaque cursor of the row with these sort keys, of one kind of list, tenant and query. Not a secret, and no permission:
 * a forged one shows only what the statement, which always names the tenant, shows anyway.
 */
export function encodeCursor(
  kind: string,
  tenantId: string,
  digest: Uint8Array,
  keys: readonly (string | null)[],
): string {
  const payload = Buffer.from(JSON.stringify(keys));
  return Buffer.concat([Buffer.of(version), checkOf(kind, tenantId, digest, payload), payload]).toString("base64url");
}

/** The row that a cursor stands for. */
export interface CursorPlace {
  /** Its sort keys, which may be any texts: a cursor can be forged. */
  texts: readonly (string | null)[];
  /** The error for a cursor whose texts cannot be keys of a row. */
  wrong(): ConnectError;
}

const isKey = (value: unknown) => value === null || (typeof value === "string" && !value.includes("\0"));

function readKeys(payload: string): (string | null)[] | undefined {
  try {
    const keys = JSON.parse(payload);
    return Array.isArray(keys) && keys.every(isKey) ? keys : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The sort keys of a cursor made by `encodeCursor` with the same kind, tenant and query.
 * @throws code 3 at `path` when it is damaged, or was made for another list, tenant or query
 */
export function decodeCursor(
  kind: string,
  tenantId: string,
  digest: Uint8Array,
  cursor: string,
  path: string,
): CursorPlace {
  const wrong = () => invalidField(path, "must be a cursor that this query has answered, unchanged", FieldRule.CURSOR);
  if (cursor.length > cursorCharsMax) throw wrong();
  const bytes = Buffer.from(cursor, "base64url");
  // Node reads over what is not base64url; a cursor has one spelling.
  if (bytes.toString("base64url") !== cursor || bytes[0] !== version) throw wrong();
  const payload = bytes.subarray(1 + checkBytes);
  if (!checkOf(kind, tenantId, digest, payload).equals(bytes.subarray(1, 1 + checkBytes))) throw wrong();
  const texts = readKeys(payload.toString("utf8"));
  if (texts === undefined) throw wrong();
  return { texts, wrong };
}
