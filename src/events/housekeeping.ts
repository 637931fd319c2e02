import type { Config } from "../config/settings.ts";
import type { Pool } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import type { Rounds } from "../every.ts";
import { tenantRounds } from "../jobs/tenant-rounds.ts";
import type { Log } from "../log.ts";
import { tenantIds } from "../tenants/tenant.ts";
import { type Ageing, ageOccurrences } from "./age.ts";
import type { StoreChanges } from "./changes.ts";
import { deleteOld, type OnDeleted } from "./retention.ts";

interface Options {
  nowMs(): number;
  store: StoreChanges;
  onDeleted?: OnDeleted;
  log: Log;
}

/**
 * Ages and deletes events of all tenants where this process leads: in portions, each in a transaction of
 * its own which may be repeated, so that a process that is no longer the leader does no harm.
 */
export function eventHousekeeping(
  { system, background: sql }: Pick<Pool, "system" | "background">,
  {
    eventAgeing,
    eventRetentionSec,
    housekeepingMs,
  }: Pick<Config, "eventAgeing" | "eventRetentionSec" | "housekeepingMs">,
  { nowMs, store, onDeleted, log }: Options,
): Rounds {
  const ageing: Ageing = new Map([...eventAgeing].map(([severity, seconds]) => [severity, seconds * 1000]));
  const retentionMs = eventRetentionSec * 1000;

  async function portion(tenantId: string): Promise<boolean> {
    const age = await transaction(sql, (tx) => ageOccurrences(tx, tenantId, ageing, { nowMs: nowMs(), store }));
    const beforeMs = BigInt(nowMs() - retentionMs);
    return (await transaction(sql, (tx) => deleteOld(tx, tenantId, beforeMs, onDeleted))) || age;
  }
  return tenantRounds({
    db: system,
    name: "events.housekeeping",
    ms: housekeepingMs,
    tenantIds: () => tenantIds(sql),
    portion,
    log,
    failed: "events were not aged or deleted",
  });
}
