/*
 * Everything by which plans depend on nothing: settings of connections, settings of one transaction, and the statement that gives plans up.
 * An ANALYZE by the leader does not do the same for reads (design/statements).
 */
import type { Fragment } from "postgres";
import type { Db } from "./connect.ts";
import { inDistributed, isPlannedWithoutValues } from "./transaction.ts";

/*
 * Few statements, each over and over: planned once. Their batches name rows by whole keys, so what joins whole tables or sorts
 * them is never right, however small a table was when its plan was made (design/statements).
 */
const plannedOnce = {
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_sort: "off",
  enable_incremental_sort: "off",
};

/** How long connections that do not plan once keep a plan, ms: it may be of tables that were small when it was made. */
export const usualReplanMs = 10_000;

/**
 * Settings of a connection by which PostgreSQL plans. One that plans once plans without values, but where tables lie distributed
 * over nodes: there the values say to which node a statement over several tables goes (design/citus).
 */
export function planSettings(planned: "once" | undefined, distributed = false) {
  return {
    // All that is read is of one tenant, which an index finds. A scan of a table that was empty when it was planned costs nothing.
    enable_seqscan: "off",
    ...(planned === "once" && plannedOnce),
    ...(planned === "once" && !distributed && { plan_cache_mode: "force_generic_plan" }),
  };
}

/** Makes a connection plan anew; sent between two uses of it. */
export const discardPlans = "discard plans";

/**
 * Plans the following statements of this transaction without their values: look-ups by key then read these rows alone, where
 * PostgreSQL has not seen the tenant yet and would take any of its indexes for as good. Where tables lie distributed the values say
 * to which node a statement goes, so there it does nothing (design/citus).
 */
export function planWithoutValues(tx: Db): void {
  if (inDistributed(tx) || isPlannedWithoutValues(tx)) return;
  tx`set local plan_cache_mode = force_generic_plan`.catch(() => undefined); // the transaction fails with it
}

/**
 * Says whose rows a table's are, so that no index which begins with the tenant is offered: for conditions that another index answers for
 * the tenant alone. Where tables lie distributed the plain form leads to the node, and PostgreSQL chooses there (design/citus).
 */
export function tenantApart(db: Db, tenantId: string): Fragment {
  return inDistributed(db) ? db`tenant_id = ${tenantId}` : db`(tenant_id = ${tenantId}) is true`;
}

/**
 * Says whose rows a table's are without letting the planner see the tenant: one that has no statistics counts as a usual one, so that an
 * index on more than the tenant is worth it. For one statement, where `planWithoutValues` would need a transaction.
 */
export function tenantUnseen(db: Db, tenantId: string): Fragment {
  const apart = tenantApart(db, tenantId);
  return inDistributed(db) ? apart : db`${apart} and tenant_id = (select ${tenantId}::uuid)`;
}

/** Plans the following statements of this transaction without sorts: what an index has in order is read in its order. */
export async function planWithoutSorts(tx: Db): Promise<void> {
  await tx`select set_config('enable_sort', 'off', true)`;
}
