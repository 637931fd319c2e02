import type { Config } from "../../config/settings.ts";
import type { Pool } from "../../db/connect.ts";
import type { NotifyListener } from "../../db/listen.ts";
import { partitionUpkeep } from "../../jobs/partition-upkeep.ts";
import { tenantRounds } from "../../jobs/tenant-rounds.ts";
import { otherServers } from "../../jobs/wake-ups.ts";
import { tenantIds } from "../../tenants/tenant.ts";
import { deleteOldNotes, historyPartitions, renewHeld } from "../queue/history.ts";
import { forgetOldMatches } from "../rules/match-store.ts";
import { type AddressSealing, sealAddresses, sealsAddresses } from "./address-sealing.ts";
import { type Dispatcher, type DispatcherOptions, dispatcher } from "./dispatcher.ts";

const channel = "belfry_deliveries";
/** Another process may store an address as it is for ten seconds after this one seals: the second pass, a minute later, finds it. */
const sealingPasses = 2;

/**
 * Starts this process's part of sending: a dispatcher that other replicas can wake, and what looks after the history. The
 * partitions that deliveries of now need are there when it answers.
 */
export async function startSending(
  pool: Pool,
  replicas: Pick<NotifyListener, "listen">,
  config: Pick<Config, "deliveryRetentionSec" | "deliveryWaitSecMax" | "housekeepingMs">,
  { begun, ...options }: Omit<DispatcherOptions, "pool" | "callOthers"> & AddressSealing,
): Promise<Dispatcher> {
  const { deliveryRetentionSec, housekeepingMs } = config;
  const { nowMs, log, keyring } = options;
  const partitions = await partitionUpkeep(pool.background, [historyPartitions(config)], nowMs, log);
  const callOthers = otherServers(pool, replicas, channel, () => running.look());
  const running = dispatcher({ ...options, pool, callOthers });

  /** How far the rows of each tenant's matches have been looked through. */
  const looked = new Map<string, Buffer>();
  const housekeeping = tenantRounds({
    db: pool.system,
    name: "deliveries.housekeeping",
    ms: housekeepingMs,
    tenantIds: () => tenantIds(pool.background),
    portion: keepHouse,
    log,
    failed: "notes on deliveries were not deleted",
  });

  /** How far the addresses of each tenant's webhooks have been sealed, and how often all of them. */
  const sealed = new Map<string, { after: string; passes: number }>();
  async function seal(tenantId: string): Promise<boolean> {
    const { after, passes } = sealed.get(tenantId) ?? { after: "", passes: 0 };
    if (passes === sealingPasses || !sealsAddresses({ keyring, begun })) return false;
    try {
      const last = await sealAddresses(pool.background, tenantId, after, keyring);
      sealed.set(tenantId, last === undefined ? { after: "", passes: passes + 1 } : { after: last, passes });
      return last !== undefined;
    } catch (err) {
      log.warn({ tenantId, err }, "addresses of webhooks were not sealed");
      return false;
    }
  }

  async function keepHouse(tenantId: string): Promise<boolean> {
    const recordMs = historyPartitions(config).keepMs;
    const bounds = { nowMs: nowMs(), retentionMs: deliveryRetentionSec * 1000, recordMs };
    if (await renewHeld(pool.background, tenantId, bounds.nowMs)) return true;
    if (await deleteOldNotes(pool.background, tenantId, bounds)) return true;
    const beforeMs = bounds.nowMs - bounds.retentionMs;
    const last = await forgetOldMatches(pool.background, tenantId, looked.get(tenantId) ?? Buffer.alloc(0), beforeMs);
    if (last === undefined) looked.delete(tenantId);
    else looked.set(tenantId, last);
    return await seal(tenantId);
  }

  return {
    ...running,
    async stop() {
      await Promise.all([running.stop(), housekeeping.stop()]);
      await partitions.stop();
    },
  };
}
