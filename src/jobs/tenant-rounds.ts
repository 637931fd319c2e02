import type { Rounds } from "../every.ts";
import type { Log } from "../log.ts";
import { everyAsLeader, type LeaderRounds } from "./leader.ts";

/** Work of all tenants that is done again and again. */
export interface TenantRounds extends LeaderRounds {
  tenantIds(): Promise<string[]>;
  /** Does some of a tenant's work; returns whether there is more. */
  portion(tenantId: string): Promise<boolean>;
  log: Pick<Log, "warn">;
  /** Logged once a round in which the work of tenants has failed, with the first of them. */
  failed: string;
}

/**
 * Does the work of one tenant after another where this process leads. One whose work fails, as that of a tenant whose node is
 * away, keeps no other one back.
 */
export function tenantRounds({ tenantIds, portion, log, failed, ...rounds }: TenantRounds): Rounds {
  return everyAsLeader(rounds, async (going) => {
    const failures: { tenantId: string; err: unknown }[] = [];
    for (const tenantId of await tenantIds()) {
      try {
        while (going() && (await portion(tenantId)));
      } catch (err) {
        failures.push({ tenantId, err });
      }
    }
    if (failures.length > 0) log.warn({ ...failures[0], tenants: failures.length }, failed);
  });
}
