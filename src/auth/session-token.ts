import { randomUUIDv7, timingSafeEqual } from "node:crypto";
import { base62, checksum, keyDigest, ofBase62, randomText, secretChars } from "./key.ts";

/** What a token is of: a browser's session, or a link that makes one. */
export type TokenKind = "bs" | "bl";

/** What a token names, and what of it is stored. */
export interface Token {
  readonly tenantId: string;
  /** Public. */
  readonly id: string;
  readonly digest: Buffer;
}

const uuidChars = 22; // 62^22 > 2^128
const pattern = /^(b[sl])_([0-9A-Za-z]{22})([0-9A-Za-z]{22})_[0-9A-Za-z]{49}$/;

/** A new token: `<kind>_<tenant><id>_<secret of 256 random bits><checksum>`. Its text is never stored. */
export function newToken(kind: TokenKind, tenantId: string): Token & { text: string } {
  const id = randomUUIDv7();
  const body = `${kind}_${short(tenantId)}${short(id)}_${randomText(32, secretChars)}`;
  const text = body + checksum(body);
  return { text, tenantId, id, digest: keyDigest(text) };
}

/** What a token of this kind names; undefined for everything whose form or checksum is wrong. Needs no database. */
export function parseToken(kind: TokenKind, text: string): Omit<Token, "digest"> | undefined {
  const [, of, tenant = "", id = ""] = pattern.exec(text) ?? [];
  if (of !== kind || checksum(text.slice(0, -6)) !== text.slice(-6)) return undefined;
  const [tenantId, ownId] = [long(tenant), long(id)];
  return tenantId === undefined || ownId === undefined ? undefined : { tenantId, id: ownId };
}

/** A token with the proof that counts only together with it; no header holds a line feed. */
export const withProof = (token: string, proof: string): string => `${token}\n${proof}`;

/** A new proof, of 256 random bits. */
export const newProof = (): string => randomText(32, secretChars);

/** Tells whether a text has this digest. */
export function isToken(text: string, digest: Buffer): boolean {
  return timingSafeEqual(digest, keyDigest(text));
}

const short = (uuid: string) => base62(BigInt(`0x${uuid.replaceAll("-", "")}`), uuidChars);

function long(text: string): string | undefined {
  const value = ofBase62(text);
  if (value >= 1n << 128n) return undefined;
  const hex = value.toString(16).padStart(32, "0");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
