import type { Config } from "../../config/settings.ts";
import type { Pool } from "../../db/connect.ts";
import type { NotifyListener } from "../../db/listen.ts";
import { leadership } from "../../jobs/leader.ts";
import { partitionUpkeep } from "../../jobs/partition-upkeep.ts";
import { tenantIds } from "../../tenants/tenant.ts";
import { forgetOldMatches } from "../deciding/match-store.ts";
import { type Dispatcher, type DispatcherOptions, dispatcher } from "./dispatcher.ts";
import { deleteOldNotes, historyPartitions } from "./history.ts";

const channel = "belfry_deliveries";

/**
 * Starts this process's part of sending: a dispatcher that other replicas can wake, and what looks after the history. The
 * partitions that deliveries of now need are there when it answers.
 */
export async function startSending(
  pool: Pool,
  replicas: Pick<NotifyListener, "listen">,
  config: Pick<Config, "deliveryRetentionSec" | "deliveryWaitSecMax" | "housekeepingMs">,
  options: Omit<DispatcherOptions, "pool" | "callOthers">,
): Promise<Dispatcher> {
  const { deliveryRetentionSec, housekeepingMs } = config;
  const { nowMs, log } = options;
  const partitions = await partitionUpkeep(pool.background, [historyPartitions(config)], nowMs, log);
  const callOthers = () => void pool.system.unsafe(`notify ${channel}`).catch(() => undefined);
  const running = dispatcher({ ...options, pool, callOthers });
  replicas.listen(channel, running.look);

  const leader = leadership(pool.system, "deliveries.housekeeping");
  /** How far the rows of each tenant's matches have been looked through. */
  const looked = new Map<string, Buffer>();
  async function keepHouse(): Promise<void> {
    if (!leader.held()) return looked.clear();
    for (const tenantId of await tenantIds(pool.background)) {
      const bounds = { nowMs: nowMs(), retentionMs: deliveryRetentionSec * 1000 };
      while (leader.held() && (await deleteOldNotes(pool.background, tenantId, bounds)));
      const beforeMs = bounds.nowMs - bounds.retentionMs;
      const last = await forgetOldMatches(pool.background, tenantId, looked.get(tenantId) ?? Buffer.alloc(0), beforeMs);
      if (last === undefined) looked.delete(tenantId);
      else looked.set(tenantId, last);
    }
  }
  let round: Promise<void> | undefined;
  const timer = setInterval(() => {
    round ??= keepHouse()
      .catch((err: unknown) => log.warn({ err }, "notes on deliveries were not deleted"))
      .finally(() => (round = undefined));
  }, housekeepingMs).unref();

  return {
    ...running,
    async stop() {
      clearInterval(timer);
      await running.stop();
      await leader.stop();
      await round;
      await partitions.stop();
    },
  };
}
