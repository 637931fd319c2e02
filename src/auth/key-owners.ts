import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { exhausted } from "../errors.ts";

/** The owner of a key, found by its prefix. */
export interface KeyOwner {
  readonly tenantId: string;
  readonly keyId: string;
}

interface Options {
  sql: Db;
  gate: { run<T>(fn: () => Promise<T>): Promise<T> };
}

const waitingMax = 10_000;

/**
 * Finds owners of prefixes, one statement at a time; prefixes that come meanwhile share the next one. So a client that tries out
 * many keys uses one connection and delays no call with a good key. @throws code 8 beyond 10,000 at once.
 */
export function ownerFinder({ sql, gate }: Options): (prefix: string) => Promise<KeyOwner | undefined> {
  let waiting = new Map<string, PromiseWithResolvers<KeyOwner | undefined>>();
  let finding = false;

  async function find() {
    while (waiting.size > 0) {
      const asked = waiting;
      waiting = new Map();
      try {
        const prefixes = [...asked.keys()];
        const rows = await gate.run(
          async () =>
            await sql<(KeyOwner & { prefix: string })[]>`
            select prefix, tenant_id as "tenantId", key_id as "keyId" from api_key_prefixes
            where prefix = any(${textArray(prefixes)}::text[])`,
        );
        for (const { prefix, tenantId, keyId } of rows) asked.get(prefix)?.resolve({ tenantId, keyId });
        for (const { resolve } of asked.values()) resolve(undefined);
      } catch (error) {
        for (const { reject } of asked.values()) reject(error);
      }
    }
    finding = false;
  }

  return (prefix) => {
    const known = waiting.get(prefix);
    if (known !== undefined) return known.promise;
    if (waiting.size >= waitingMax)
      throw exhausted("too many unknown keys are being looked up", 1, ErrorReason.WRONG_KEYS);
    const answer = Promise.withResolvers<KeyOwner | undefined>();
    waiting.set(prefix, answer);
    if (!finding) {
      finding = true;
      void find();
    }
    return answer.promise;
  };
}

/** Returns the tenant of the key with this prefix; undefined when it was revoked. */
export async function tenantOfKey(db: Db, prefix: string): Promise<string | undefined> {
  const [row] = await db<{ tenantId: string }[]>`
    select tenant_id as "tenantId" from api_key_prefixes where prefix = ${prefix}`;
  return row?.tenantId;
}
