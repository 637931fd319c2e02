import { hash } from "node:crypto";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { changedMeanwhile } from "../errors.ts";

/** What distinguishes one state of a resource from another one: a digest of what callers may set of it, in this order. */
export function etagOf(values: readonly unknown[]): string {
  const text = JSON.stringify(values, (_name, value) => (typeof value === "bigint" ? String(value) : value));
  return hash("sha256", text, "base64url").slice(0, 16);
}

/**
 * Checks that a resource, which the caller has locked, is still what the sender of a change has read. Without an etag any state is
 * changed. Returns the resource. @throws code 10 with the resource as it is now
 */
export function checkEtag<S extends DescMessage>(
  kind: string,
  name: string,
  sent: { readonly etag: string },
  schema: S,
  current: MessageShape<S> & { readonly etag: string },
): MessageShape<S> {
  if (sent.etag !== "" && sent.etag !== current.etag) throw changedMeanwhile(kind, name, schema, current);
  return current;
}
