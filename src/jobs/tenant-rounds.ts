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

/** How many portions a tenant's work takes before that of the next. */
const turnPortions = 10;

/**
 * Does the work of tenants in turns where this process leads, until none has more. One that has much, or whose work fails, as that
 * of a tenant whose node is away, keeps no other one back.
 */
export function tenantRounds({ tenantIds, portion, log, failed, ...rounds }: TenantRounds): Rounds {
  return everyAsLeader(rounds, async (going) => {
    const failures: { tenantId: string; err: unknown }[] = [];
    async function takeTurn(tenantId: string): Promise<boolean> {
      try {
        for (let done = 0; done < turnPortions; done += 1) if (!going() || !(await portion(tenantId))) return false;
        return true;
      } catch (err) {
        failures.push({ tenantId, err });
        return false;
      }
    }
    for (let left = await tenantIds(); left.length > 0; ) {
      const unfinished: string[] = [];
      for (const tenantId of left) if (await takeTurn(tenantId)) unfinished.push(tenantId);
      left = unfinished;
    }
    if (failures.length > 0) log.warn({ ...failures[0], tenants: failures.length }, failed);
  });
}
