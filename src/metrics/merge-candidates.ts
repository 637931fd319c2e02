import type { Sql } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { every } from "../every.ts";
import { hastenMerging } from "./merge.ts";

/** Informs the jobs that merge of new points, so that tenants without any have no job to run. */
export interface MergeCandidates {
  /** Points of a tenant were stored. */
  note(tenantId: string): void;
  /** Reports what was noted, and no more afterwards. */
  stop(): Promise<void>;
}

/** Starts to report, once in `periodMs` a tenant. A hint that is lost delays merging by an hour at most, and no search. */
export function mergeCandidates(sql: Sql, nowMs: () => number, periodMs = 10_000): MergeCandidates {
  let noted = new Set<string>();

  async function tell() {
    const tenants = noted;
    noted = new Set();
    for (const tenantId of tenants) {
      await transaction(sql, (tx) => hastenMerging(tx, tenantId, nowMs())).catch(() => undefined);
    }
  }

  const rounds = every(periodMs, tell);
  return {
    note: (tenantId) => void noted.add(tenantId),
    async stop() {
      await rounds.stop();
      await tell();
    },
  };
}
