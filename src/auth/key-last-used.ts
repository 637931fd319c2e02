import { and, eq, isNull, lte, or, sql } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import { textArray } from "../db/batch.ts";
import { databaseNowMs } from "../db/columns.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import type { Principal } from "./principal.ts";
import { apiKeys } from "./tables.ts";

/** Keeps when keys were last used, to the minute or so. */
export interface LastUse {
  /** A key was accepted. Costs a look into a map. */
  note(principal: Pick<Principal, "tenantId" | "keyId">): void;
  /** Writes what is still to be written, as far as the database answers. */
  stop(): Promise<void>;
}

interface Options {
  sql: Db;
  gate: { run<T>(fn: () => Promise<T>): Promise<T> };
  /** How long after a use the next one of the same key is not written. */
  quietMs?: number;
  /** How long uses are gathered before they are written together. */
  gatherMs?: number;
}

const keysMax = 100_000;

/** Uses are gathered for a second and written one statement a tenant; a key at most once a minute, whatever the number of replicas. */
export function lastUse({ sql: db, gate, quietMs = 60_000, gatherMs = 1000 }: Options): LastUse {
  const noted = new LRUCache<string, true>({ max: keysMax, ttl: quietMs });
  let waiting = new Map<string, Set<string>>();
  let timer: NodeJS.Timeout | undefined;

  async function write(tenantId: string, keyIds: ReadonlySet<string>) {
    const used = sql`${apiKeys.id} = any(${textArray([...keyIds])}::text[])`;
    const due = lte(apiKeys.lastUsedMs, sql`${databaseNowMs} - ${BigInt(quietMs)}::int8`);
    await orm(db)
      .update(apiKeys)
      .set({ lastUsedMs: databaseNowMs })
      .where(and(eq(apiKeys.tenantId, tenantId), used, or(isNull(apiKeys.lastUsedMs), due)));
  }

  async function flush() {
    timer = undefined;
    const uses = waiting;
    waiting = new Map();
    for (const [tenantId, keyIds] of uses) {
      try {
        await gate.run(() => write(tenantId, keyIds));
      } catch {
        for (const keyId of keyIds) noted.delete(keyId); // its next use is noted again
      }
    }
  }

  return {
    note({ tenantId, keyId }) {
      if (noted.has(keyId)) return;
      noted.set(keyId, true);
      const keyIds = waiting.get(tenantId);
      if (keyIds === undefined) waiting.set(tenantId, new Set([keyId]));
      else keyIds.add(keyId);
      timer ??= setTimeout(flush, gatherMs).unref();
    },
    async stop() {
      clearTimeout(timer);
      await flush();
    },
  };
}
