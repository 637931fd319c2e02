import type { Config } from "./config/settings.ts";
import type { Pool } from "./db/connect.ts";
import { transaction } from "./db/transaction.ts";
import type { EntityCache } from "./entities/entity-cache.ts";
import { retainEntities } from "./entities/retention.ts";
import { entitiesWithEvents } from "./events/retention.ts";
import type { Rounds } from "./every.ts";
import { cancel } from "./jobs/queue.ts";
import { tenantRounds } from "./jobs/tenant-rounds.ts";
import type { Log } from "./log.ts";
import { entitiesWithSeries } from "./metrics/retention.ts";
import { tenantIds } from "./tenants/tenant.ts";

const lookMs = 3_600_000;

/** Begins to look through the entities of all tenants once an hour, where this process leads. */
export function startRetention(
  { system, background }: Pick<Pool, "system" | "background">,
  config: Pick<Config, "idleEntityRetentionSec" | "deletedEntityRetentionSec" | "modelAgeSecMax">,
  { known, nowMs, log }: { known: EntityCache; nowMs(): number; log: Log },
): Rounds {
  const retention = {
    idleSec: config.idleEntityRetentionSec,
    // A model from before a deletion may come as late as this, and must not bring the entity back.
    deletedSec: Math.max(config.deletedEntityRetentionSec, config.modelAgeSecMax),
    inUse: [entitiesWithSeries, entitiesWithEvents],
    known,
  };
  /** How far each tenant's entities have been looked through. */
  const looked = new Map<string, Buffer>();

  async function portion(tenantId: string): Promise<boolean> {
    const after = looked.get(tenantId) ?? Buffer.alloc(0);
    const last = await transaction(background, async (tx) => {
      const reached = await retainEntities(tx, tenantId, after, retention, nowMs());
      // Servers up to 0.2.x do the same as a job, which no worker knows any more.
      await cancel(tx, { tenantId, kind: "entities.retention" }, "daily");
      return reached;
    });
    if (last === undefined) looked.delete(tenantId);
    else looked.set(tenantId, last);
    return last !== undefined;
  }

  return tenantRounds({
    db: system,
    name: "entities.retention",
    ms: lookMs,
    firstMs: 1000,
    tenantIds: () => tenantIds(background),
    portion,
    log,
    failed: "entities were not looked through",
  });
}
