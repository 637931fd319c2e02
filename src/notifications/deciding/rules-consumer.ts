import type { Db } from "../../db/connect.ts";
import type { Consumer } from "../../events/consumers/consumer.ts";
import { behindSinceMs } from "../../events/consumers/cursors.ts";
import { type Deciding, rulesName } from "./deciding.ts";
import { takeFacts } from "./take-facts.ts";
import { unmatchedSinceMs } from "./unmatched.ts";

/** Holds what the feed has of occurrences against the rules of their tenant, as they are by then. */
export function rulesConsumer(deciding: Deciding): Consumer {
  return {
    name: rulesName,
    wants: (tenantId, rulesVersion) => deciding.memory.mayNotify(tenantId, rulesVersion),
    async batch(tx, tenantId, facts, times) {
      const [rules, unmatchedMs] = await Promise.all([
        deciding.memory.now(tx, tenantId),
        unmatchedSinceMs(tx, tenantId),
      ]);
      if (unmatchedMs < Infinity) return { taken: 0 };
      const taken = await takeFacts(deciding, tx, tenantId, rules, facts, times);
      return rules.rules.size > 0 ? { taken } : { taken, idleAt: rules.version };
    },
  };
}

/** When the oldest change of a tenant was stored that rules have not seen yet; Infinity: they have seen all. */
export async function unseenSinceMs(db: Db, tenantId: string): Promise<number> {
  return Math.min(await behindSinceMs(db, tenantId, rulesName), await unmatchedSinceMs(db, tenantId));
}
