import type { Db, Pool } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import type { Rounds } from "../every.ts";
import type { Log } from "../log.ts";
import { everyAsLeader } from "./leader.ts";
import { enqueue, isEnqueued } from "./queue.ts";
import { inTurns } from "./round-robin.ts";

const lookMs = 3_600_000;
const jobId = "daily";

/**
 * Sees to it, where this process leads, that every tenant has a job of each of these kinds, which does itself again: at the
 * start, and each hour for tenants that are new.
 */
export function daily(
  { system, background }: Pick<Pool, "system" | "background">,
  { kinds, tenantIds, nowMs, log, firstMs = 1000 }: DailyOptions,
): Rounds {
  async function begin(tenantId: string): Promise<boolean> {
    for (const kind of kinds) {
      await transaction(background, async (tx) => {
        if (await isEnqueued(tx, { tenantId, kind }, jobId)) return;
        await enqueue(tx, { tenantId, kind }, [{ id: jobId, payload: {} }], nowMs());
      });
    }
    return false;
  }

  return everyAsLeader({ db: system, name: "jobs.daily", ms: lookMs, firstMs }, async (going) =>
    inTurns(await tenantIds(background), going, begin, (failed) => log.warn(failed, "daily jobs were not begun")),
  );
}

interface DailyOptions {
  kinds: readonly string[];
  tenantIds(db: Db): Promise<string[]>;
  nowMs(): number;
  log: Pick<Log, "warn">;
  /** When it looks first, ms. */
  firstMs?: number;
}
