import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from "node:crypto";

/*
 * AES-256-GCM, two layers: a master key wraps the data key of each tenant, which seals secrets. The kind of a text
 * and its owner are bound to it as additional data, so that it opens in its own place only. docs/formats/envelope.md
 */

const version = 1;
const nonceBytes = 12;
const tagBytes = 16;
const keyBytes = 32;

/** What a secret belongs to. */
export interface SecretOwner {
  /** A word for each table that holds secrets: `credential`. */
  readonly kind: string;
  readonly id: string;
}

function seal(key: KeyObject, plain: Uint8Array, place: readonly string[]): Buffer {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(JSON.stringify(place)));
  return Buffer.concat([Buffer.of(version), nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Undefined when it is not what was sealed with this key for this place. */
function open(key: KeyObject, sealed: Buffer, place: readonly string[]): Buffer | undefined {
  if (sealed[0] !== version || sealed.length < 1 + nonceBytes + tagBytes) return undefined;
  const end = sealed.length - tagBytes;
  const nonce = sealed.subarray(1, 1 + nonceBytes);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(JSON.stringify(place)));
  decipher.setAuthTag(sealed.subarray(end));
  const plain = decipher.update(sealed.subarray(1 + nonceBytes, end));
  try {
    return Buffer.concat([plain, decipher.final()]);
  } catch {
    return undefined;
  }
}

/** A new random key of 256 bits. */
export function newDataKey(): KeyObject {
  return createSecretKey(randomBytes(keyBytes));
}

const proofPlace = (masterKeyId: string) => ["master key", masterKeyId];

/** What opens with this master key alone, and says nothing of it. */
export function proofOf(master: KeyObject, masterKeyId: string): Buffer {
  return seal(master, Buffer.alloc(0), proofPlace(masterKeyId));
}

/** Whether a proof was made by this key under this id. */
export function proves(master: KeyObject, masterKeyId: string, proof: Buffer): boolean {
  return open(master, proof, proofPlace(masterKeyId)) !== undefined;
}

const wrapPlace = (tenantId: string, masterKeyId: string) => ["data key", tenantId, masterKeyId];

/** A tenant's data key, readable by this master key alone. */
export function wrapDataKey(master: KeyObject, masterKeyId: string, tenantId: string, dataKey: KeyObject): Buffer {
  return seal(master, dataKey.export(), wrapPlace(tenantId, masterKeyId));
}

/** The data key that was wrapped for this tenant; undefined when it was not wrapped so, by this key. */
export function unwrapDataKey(
  master: KeyObject,
  masterKeyId: string,
  tenantId: string,
  wrapped: Buffer,
): KeyObject | undefined {
  const bytes = open(master, wrapped, wrapPlace(tenantId, masterKeyId));
  return bytes?.length === keyBytes ? createSecretKey(bytes) : undefined;
}

const secretPlace = (tenantId: string, { kind, id }: SecretOwner, name: string) => ["secret", tenantId, kind, id, name];

/** One secret as it is stored, base64. */
export function sealSecret(
  dataKey: KeyObject,
  tenantId: string,
  owner: SecretOwner,
  name: string,
  secret: string,
): string {
  return seal(dataKey, Buffer.from(secret), secretPlace(tenantId, owner, name)).toString("base64");
}

/** The secret that was sealed for this tenant, owner and name; undefined when it was not. */
export function openSecret(
  dataKey: KeyObject,
  tenantId: string,
  owner: SecretOwner,
  name: string,
  sealed: string,
): string | undefined {
  return open(dataKey, Buffer.from(sealed, "base64"), secretPlace(tenantId, owner, name))?.toString("utf8");
}
