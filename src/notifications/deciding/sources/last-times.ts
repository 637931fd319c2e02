import { bigintArray, byteaArray, textArray } from "../../../db/batch.ts";
import type { Db } from "../../../db/connect.ts";
import { every } from "../../../every.ts";
import type { TenantRules } from "../../rules/tenant-rules.ts";
import { keyText } from "../../subject/subject.ts";

const periodMs = 2000;
/** A time that fits no watch is kept this long: the entity may be about to be watched. */
const keptMs = 30_000;

/** When data came last of what triggers watch, until it is written for all servers. */
export interface LastTimes {
  /** Data came of an entity (`metricData`, `eventData`). After the commit. */
  note(tenantId: string, rules: TenantRules, data: string, entityId: Buffer, nowMs: number): void;
  /** Writes what has come since the last time. */
  flush(nowMs: number): Promise<void>;
  /** Writes what is left. */
  stop(): Promise<void>;
}

interface Last {
  triggerName: string;
  entityId: Buffer;
  lastMs: number;
}

/** Keeps the last times of what is watched, and writes them every two seconds. */
export function lastTimes(db: Db, nowMs: () => number): LastTimes {
  const byTenant = new Map<string, Map<string, Last>>();

  async function flush(now: number) {
    for (const [tenantId, times] of [...byTenant]) {
      byTenant.delete(tenantId);
      const written = await write(db, tenantId, [...times.values()]).catch(() => new Set<string>());
      for (const [key, last] of times) {
        if (!written.has(key) && last.lastMs > now - keptMs) keep(tenantId, key, last);
      }
    }
  }

  function keep(tenantId: string, key: string, last: Last) {
    let times = byTenant.get(tenantId);
    if (times === undefined) {
      times = new Map();
      byTenant.set(tenantId, times);
    }
    const known = times.get(key);
    if (known === undefined) times.set(key, last);
    else known.lastMs = Math.max(known.lastMs, last.lastMs);
  }

  const rounds = every(periodMs, () => flush(nowMs()));

  return {
    note(tenantId, rules, data, entityId, lastMs) {
      for (const trigger of rules.byData("staleData").get(data) ?? []) {
        keep(tenantId, pairKey(trigger.name, entityId), { triggerName: trigger.name, entityId, lastMs });
      }
    },
    flush,
    async stop() {
      await rounds.stop();
      await flush(nowMs());
    },
  };
}

const pairKey = (triggerName: string, entityId: Buffer) => `${keyText(entityId)}${triggerName}`;

/** Answers those that are watched. By the key: they are there, and locked, so that none is made. */
async function write(db: Db, tenantId: string, times: readonly Last[]): Promise<Set<string>> {
  const rows = await db<{ name: string; id: Buffer }[]>`
    insert into stale_watches as stored (tenant_id, trigger_name, entity_id, last_ms, fired)
    select watched.tenant_id, watched.trigger_name, watched.entity_id, seen.last_ms, watched.fired
    from unnest(
      ${textArray(times.map(({ triggerName }) => triggerName))}::text[],
      ${byteaArray(times.map(({ entityId }) => entityId))}::bytea[],
      ${bigintArray(times.map(({ lastMs }) => BigInt(lastMs)))}::bigint[]
    ) as seen (trigger_name, entity_id, last_ms)
    cross join lateral (
      select tenant_id, trigger_name, entity_id, fired from stale_watches
      where tenant_id = ${tenantId} and trigger_name = seen.trigger_name
        and entity_id >= seen.entity_id and entity_id <= seen.entity_id
      order by entity_id for no key update offset 0
    ) as watched
    on conflict (tenant_id, trigger_name, entity_id) do update set last_ms = greatest(stored.last_ms, excluded.last_ms)
    returning stored.trigger_name as name, stored.entity_id as id`;
  return new Set(rows.map(({ name, id }) => pairKey(name, id)));
}
