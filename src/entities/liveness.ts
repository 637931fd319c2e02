import { bigintArray, byteaArray } from "../db/batch.ts";
import type { Sql } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { every } from "../every.ts";
import type { EntityCache } from "./entity-cache.ts";
import { storedRow } from "./stored-row.ts";

const MINUTE_MS = 60_000;
/** Entities that wait at most; beyond, they are written before the minute is over. */
const waitingMax = 50_000;
/** Entities a statement. */
const portion = 1000;

/** Moves the liveness of entities on that are known to be there, once a minute. */
export interface Liveness {
  /** Notes that data of an entity have been stored. */
  note(tenantId: string, entityId: Buffer, timeMs: number): void;
  /** Writes what has been noted. */
  flush(): Promise<void>;
  /** Writes it, and no more afterwards. */
  stop(): Promise<void>;
}

interface Seen {
  id: Buffer;
  timeMs: number;
}

/**
 * Starts to write what is noted, every `periodMs`. What a crash loses is noted again with the next
 * data. What `known` says of an entity's last data is not written again, and what was written is noted there.
 */
export function liveness(sql: Sql, periodMs: number, known: EntityCache): Liveness {
  let seen = new Map<string, Map<string, Seen>>();
  let count = 0;

  async function flush() {
    const tenants = seen;
    seen = new Map();
    count = 0;
    for (const [tenantId, entities] of tenants) {
      // In the order of their ids, as all writers lock them.
      const sorted = [...entities.values()].sort((a, b) => Buffer.compare(a.id, b.id));
      for (let i = 0; i < sorted.length; i += portion) {
        const written = await write(sql, tenantId, sorted.slice(i, i + portion));
        for (const { id, liveness_ms } of written) known.noteEntity(id, Number(liveness_ms));
      }
    }
  }

  const rounds = every(periodMs, flush);
  return {
    note(tenantId, entityId, timeMs) {
      if ((known.livenessMs(entityId) ?? -1) >= timeMs - (timeMs % MINUTE_MS)) return;
      let entities = seen.get(tenantId);
      if (entities === undefined) {
        entities = new Map();
        seen.set(tenantId, entities);
      }
      const key = entityId.toString("latin1");
      const noted = entities.get(key);
      if (noted === undefined) {
        entities.set(key, { id: entityId, timeMs });
        count += 1;
        if (count > waitingMax) void flush().catch(() => undefined);
      } else if (timeMs > noted.timeMs) noted.timeMs = timeMs;
    },
    flush,
    async stop() {
      await rounds.stop();
      await flush().catch(() => undefined);
    },
  };
}

async function write(sql: Sql, tenantId: string, seen: readonly Seen[]) {
  const times = seen.map(({ timeMs }) => BigInt(timeMs - (timeMs % MINUTE_MS)));
  return await sql<{ id: Buffer; liveness_ms: bigint }[]>`
    insert into entities as stored (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
    select home.tenant_id, sent.id, name, dimensions, metadata, created_ms, updated_ms, sent.liveness_ms
    from ${home(sql, tenantId)}, unnest(${byteaArray(seen.map(({ id }) => id))}::bytea[], ${bigintArray(times)}::bigint[]) as sent (id, liveness_ms)
      ${storedRow(sql, tenantId)}
    on conflict (tenant_id, id) do update set liveness_ms = excluded.liveness_ms, deleted_ms = null, idle = null
      where stored.liveness_ms < excluded.liveness_ms and (stored.deleted_ms is null or stored.idle)
    returning id, liveness_ms`;
}
