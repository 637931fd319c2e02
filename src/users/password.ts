import { argon2, randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";
import { invalidField } from "../errors.ts";
import { type Holder, limiter } from "../limiter.ts";

const derive = promisify(argon2);

// OWASP's parameters for argon2id: 19 MiB, and some tens of milliseconds of one processor (decisions/0016).
const memoryKiB = 19_456;
const passes = 2;
const parallelism = 1;
const saltBytes = 16;
const tagBytes = 32;

/** @throws code 3 at `path` when a character stands more than twice in a row. The other rules stand in the proto file. */
export function checkPassword(password: string, path: string): void {
  if (/(.)\1\1/su.test(password)) {
    throw invalidField(path, "must not have more than two identical characters in a row");
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
 * Hashes a password when its turn has come and `check`, a quick look at whether it is still wanted, has passed.
 * @throws code 8 when too many wait already; the signal's reason when the caller has gone before it is done; what `check` throws
 */
export type HashPassword = (
  who: Holder,
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
  // A hash takes some tens of milliseconds: turns are enough, and a tenant alone may use all places.
  const hashing = limiter({ max: atOnceMax, waitingMax, what: "passwords are being hashed", retrySec: 5, shares: {} });

  return async (who, password, signal, check) => {
    const turn = await hashing.turn(who, signal);
    try {
      await check();
      const hash = await hashed(password);
      signal.throwIfAborted(); // whose caller was told of a failure is not written
      return hash;
    } finally {
      turn.release();
    }
  };
}
