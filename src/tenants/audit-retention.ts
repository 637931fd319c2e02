import type { Db } from "../db/connect.ts";
import type { Rounds } from "../every.ts";
import { everyAsLeader } from "../jobs/leader.ts";
import { inTurns } from "../jobs/round-robin.ts";
import type { Log } from "../log.ts";

const lookMs = 3_600_000;
/** Rows a statement: some milliseconds. */
const portion = 1000;

/** Removes rows of a tenant's audit log from before this time, the oldest first, at most a portion; returns how many went. */
export async function dropAuditRows(db: Db, tenantId: string, beforeMs: number): Promise<number> {
  const gone = await db`
    delete from audit_entries where tenant_id = ${tenantId} and (time_ms, id) in (
      select time_ms, id from audit_entries
      where tenant_id = ${tenantId} and time_ms < ${BigInt(Math.floor(beforeMs))}
      order by time_ms, id limit ${portion}
    )`;
  return gone.count;
}

/**
 * Removes what is older than `keepSec` from the audit log of all tenants, in turns and once an hour, where this process leads;
 * 0 keeps it for ever.
 */
export function auditRetention(db: Db, keepSec: number, nowMs: () => number, log: Pick<Log, "warn">): Rounds {
  if (keepSec === 0) return { stop: () => Promise.resolve() };
  return everyAsLeader({ db, name: "audit.retention", ms: lookMs, firstMs: 5000 }, async (going) => {
    const ids = (await db<{ id: string }[]>`select id from tenants`).map(({ id }) => id);
    await inTurns(
      ids,
      going,
      async (id) => (await dropAuditRows(db, id, nowMs() - keepSec * 1000)) === portion,
      (failed) => log.warn(failed, "old rows of the audit log were not removed"),
    );
  });
}
