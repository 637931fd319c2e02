import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const prefixChars = 12;
/** Digits of a secret of 256 bits: 62^43 > 2^256. */
export const secretChars = 43;
const checksumChars = 6; // 62^6 > 2^32

/** The form of an API key, for secret scanners: prefix, secret of 256 random bits, checksum. */
export const keyPattern = /^bf_([0-9A-Za-z]{12})_[0-9A-Za-z]{49}$/;

/** A number in digits, the highest first. */
export function base62(value: bigint, length: number): string {
  let text = "";
  for (let rest = value; text.length < length; rest /= 62n) text = digits[Number(rest % 62n)] + text;
  return text;
}

/** The number that digits stand for. */
export function ofBase62(text: string): bigint {
  let value = 0n;
  for (const digit of text) value = value * 62n + BigInt(digits.indexOf(digit));
  return value;
}

/** Random bytes as digits. */
export function randomText(bytes: number, length: number): string {
  return base62(BigInt(`0x${randomBytes(bytes).toString("hex")}`), length);
}

/** The six digits at the end of a key or token, by which a mistyped one is known without a statement. */
export function checksum(text: string): string {
  return base62(BigInt(crc32(text)), checksumChars);
}

/** A new random key: its whole text, which is shown once and never stored, and the public prefix that finds it. */
export function newApiKey(): { text: string; prefix: string } {
  const prefix = randomText(16, prefixChars);
  const body = `bf_${prefix}_${randomText(32, secretChars)}`;
  return { text: body + checksum(body), prefix };
}

/** The prefix of a key whose form and checksum are right; undefined for everything else. Needs no database. */
export function parseKey(text: string): string | undefined {
  const prefix = keyPattern.exec(text)?.[1];
  if (prefix === undefined) return undefined;
  const end = text.length - checksumChars;
  return checksum(text.slice(0, end)) === text.slice(end) ? prefix : undefined;
}

/** Where the prefix is in a text that is a key; anything in one that is none. */
export function prefixOf(text: string): string {
  return text.slice(3, 3 + prefixChars);
}

/** SHA-256 of a key's text, 32 bytes: all that is stored of its secret. The secret is random, so no slow hash is needed. */
export function keyDigest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}
