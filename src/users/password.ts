import { argon2, randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { invalidField } from "../errors.ts";
import { type Holder, limiter } from "../limiter.ts";

const derive = promisify(argon2);

// OWASP's parameters for argon2id (design/tenants-and-keys).
const memoryKiB = 19_456;
const passes = 2;
const parallelism = 1;
const saltBytes = 16;
const tagBytes = 32;

/** @throws code 3 at `path` when a character stands more than twice in a row. The other rules are in the proto file. */
export function checkPassword(password: string, path: string): void {
  if (/(.)\1\1/su.test(password)) {
    throw invalidField(path, "must not have more than two identical characters in a row", FieldRule.FORMAT);
  }
}

/** The argon2id hash of a password in PHC form, with a salt of its own; in a thread of Node's pool. */
async function hashed(password: string): Promise<string> {
  const nonce = randomBytes(saltBytes);
  const message = Buffer.from(password);
  const tag = await derive("argon2id", { message, nonce, parallelism, tagLength: tagBytes, memory: memoryKiB, passes });
  const base64 = (bytes: Buffer) => bytes.toString("base64").replaceAll("=", "");
  return `$argon2id$v=19$m=${memoryKiB},t=${passes},p=${parallelism}$${base64(nonce)}$${base64(tag)}`;
}

/**
 * Hashes a password in its turn, after `check`, a quick test whether the hash is still needed.
 * @throws code 8 when too many wait already; the signal's reason when the call is cancelled before; what `check` throws
 */
export type HashPassword = (
  holder: Holder,
  password: string,
  signal: AbortSignal,
  check: () => Promise<unknown>,
) => Promise<string>;

/**
 * Makes what hashes the passwords of this process: `atOnceMax` at a time, so that memory is bounded and Node's pool of
 * four threads and the processors keep room for others; `waitingMax` more wait, in turns between tenants.
 */
export function passwordHasher({
  atOnceMax = Math.max(1, Math.min(2, availableParallelism() - 1)),
  waitingMax = 500,
} = {}): HashPassword {
  // Hashes are short: turns are enough, and one tenant may use all places.
  const hashing = limiter({ max: atOnceMax, waitingMax, what: "passwords are being hashed", retrySec: 5, shares: {} });

  return (holder, password, signal, check) =>
    hashing.run(
      holder,
      async () => {
        await check();
        const hash = await hashed(password);
        signal.throwIfAborted(); // a caller that got a failure must not find it written
        return hash;
      },
      signal,
    );
}
