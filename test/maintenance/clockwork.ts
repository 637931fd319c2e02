import type { Db, Sql } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { claim, finishJobs } from "../../src/jobs/queue.ts";
import type { JobKind } from "../../src/jobs/worker.ts";
import type { WindowHooks } from "../../src/maintenance/hooks.ts";
import { windowKinds } from "../../src/maintenance/run.ts";
import type { WindowWrite } from "../../src/maintenance/windows.ts";
import { putModels } from "../entities/stored.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";

/** The service's own functions within one tenant, at moments that the test chooses. */
export interface Clockwork {
  tenant: TestTenant;
  /** Does what a call does. */
  write<T>(nowMs: number, work: (tx: Db, writing: WindowWrite) => Promise<T>): Promise<T>;
  /** Describes an entity; each model is newer than the one before it. */
  put(source: string, metadata: Record<string, unknown>): Promise<void>;
  /** Does the jobs that are due, as the worker does. */
  work(nowMs: number): Promise<void>;
  /** The production states of living entities. */
  states(): Promise<Record<string, number>>;
}

/** @param others jobs that follow from those of windows */
export async function clockwork(
  sql: Sql,
  hooks: WindowHooks,
  firstModelMs: number,
  others: readonly JobKind[] = [],
): Promise<Clockwork> {
  const tenant = await testTenant(sql);
  const kinds = [...windowKinds(hooks, () => undefined), ...others];
  let modelMs = firstModelMs;
  return {
    tenant,
    write: (nowMs, work) => transaction(sql, (tx) => work(tx, { tenant, clientName: "test", nowMs, hooks })),
    async put(source, metadata) {
      modelMs += 1;
      await putModels(sql, tenant.id, [{ timestampMs: BigInt(modelMs), dimensions: { source }, metadata }], modelMs);
    },
    async work(nowMs) {
      for (const kind of kinds) {
        const lane = { tenantId: tenant.id, kind: kind.name };
        for (;;) {
          const jobs = await claim(sql, lane, { sizeMax: kind.sizeMax, leaseMs: 10_000, nowMs });
          if (jobs.length === 0) break;
          await transaction(sql, async (tx) => {
            const again = await kind.run(tx, lane.tenantId, jobs, nowMs);
            await finishJobs(tx, lane, jobs, again);
          });
        }
      }
    },
    async states() {
      const rows = await sql<{ source: string; state: number }[]>`
        select dimensions ->> 'source' as source,
          coalesce(window_production_state, model_production_state, 1000)::float8 as state
        from entities where tenant_id = ${tenant.id} and deleted_ms is null`;
      return Object.fromEntries(rows.map(({ source, state }) => [source, state]));
    },
  };
}
