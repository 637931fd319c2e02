import type { Config } from "./config/settings.ts";
import type { Pool } from "./db/connect.ts";
import type { EntityCache } from "./entities/entity-cache.ts";
import { entityRetentionKind } from "./entities/retention.ts";
import { entitiesWithEvents } from "./events/retention.ts";
import { daily } from "./jobs/daily.ts";
import type { JobKind } from "./jobs/worker.ts";
import type { Log } from "./log.ts";
import { entitiesWithSeries } from "./metrics/retention.ts";
import { tenantIds } from "./tenants/tenant.ts";

/** What goes after its time and needs to know of several domains, as jobs for the worker. */
export interface Retention {
  readonly kinds: readonly JobKind[];
  stop(): Promise<void>;
}

/** Begins to look after what tenants have, once a day each. */
export function startRetention(
  pool: Pick<Pool, "system" | "background">,
  config: Pick<Config, "idleEntityRetentionSec" | "deletedEntityRetentionSec" | "modelAgeSecMax">,
  { known, nowMs, log }: { known: EntityCache; nowMs(): number; log: Log },
): Retention {
  const entities = entityRetentionKind({
    idleSec: config.idleEntityRetentionSec,
    // A model from before a deletion may come as late as this, and must not bring the entity back.
    deletedSec: Math.max(config.deletedEntityRetentionSec, config.modelAgeSecMax),
    inUse: [entitiesWithSeries, entitiesWithEvents],
    known,
  });
  const kinds = [entities];
  const days = daily(pool, { kinds: kinds.map(({ name }) => name), tenantIds, nowMs, log });
  return { kinds, stop: days.stop };
}
