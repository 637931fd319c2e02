import type { Db } from "../../db/connect.ts";
import { type Consumer, feedJob, feedKind } from "../../events/consumers/consumer.ts";
import { behindSinceMs } from "../../events/consumers/cursors.ts";
import { runBy } from "../../jobs/queue.ts";
import { type Deciding, rulesName } from "./deciding.ts";
import { takeFacts } from "./take-facts.ts";

/** Holds what the feed has of occurrences against the rules of their tenant, as they are by then. */
export function rulesConsumer(deciding: Deciding): Consumer {
  return {
    name: rulesName,
    wants: (tenantId, rulesVersion) => deciding.memory.mayNotify(tenantId, rulesVersion),
    async batch(tx, tenantId, facts, moment) {
      const { memory } = deciding;
      const { rulesVersion } = moment;
      const rules = await (rulesVersion === undefined
        ? memory.now(tx, tenantId)
        : memory.at(tx, tenantId, rulesVersion));
      const taken = await takeFacts(deciding, tx, tenantId, rules, facts, moment);
      return rules.rules.size > 0 ? { taken } : { taken, idleAt: rules.version };
    },
  };
}

/** Changes that are this old, ms, have a job that reads them. */
const leftMs = 5000;

/**
 * Returns when the oldest change of a tenant was stored that rules have not seen yet, ms; Infinity: they have seen all. Whoever asks waits
 * for them: what has lost its job, in a tenant where nothing else happens, is given one.
 */
export async function unseenSinceMs(db: Db, tenantId: string, nowMs: number): Promise<number> {
  const behindMs = await behindSinceMs(db, tenantId, rulesName);
  if (nowMs - behindMs > leftMs) await runBy(db, { tenantId, kind: feedKind(rulesName) }, feedJob, nowMs, nowMs);
  return behindMs;
}
