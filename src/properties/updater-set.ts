import type { Db } from "../db/connect.ts";

/*
 * Orders transactions that change entities and transactions that enable updaters: while an updater is being enabled, each
 * of the former either is seen by the updater's first run, or enqueues a job of its own. So a transaction
 * that finds no updater enabled holds a shared lock on the set's row until it commits, and one that enables an updater waits
 * for all of these.
 */

/** Whether an updater of the tenant is enabled, in the caller's transaction; a no holds until that ends. */
export async function anyEnabled(tx: Db, tenantId: string): Promise<boolean> {
  for (;;) {
    // The second is read after the first: where that found the row enabled, this may find it so no more.
    const [shared, [row]] = await Promise.all([
      tx`select from property_updater_sets where tenant_id = ${tenantId} and not enabled for key share`,
      tx<{ enabled: boolean }[]>`select enabled from property_updater_sets where tenant_id = ${tenantId}`,
    ]);
    if (row?.enabled) return true;
    if (shared.count > 0) return false;
    if (row === undefined) await makeSet(tx, tenantId);
  }
}

async function makeSet(db: Db, tenantId: string): Promise<void> {
  await db`
    insert into property_updater_sets (tenant_id, version, enabled) values (${tenantId}, 0, false)
    on conflict (tenant_id) do nothing`;
}

/**
 * Announces that an updater is about to be enabled, and is to be committed before `lockSet`: from then on no
 * transaction that changes entities shares the row, so that a steady stream of them cannot keep `lockSet` waiting. May be repeated.
 */
export async function expectEnabled(db: Db, tenantId: string): Promise<void> {
  await db`
    insert into property_updater_sets (tenant_id, version, enabled) values (${tenantId}, 0, true)
    on conflict (tenant_id) do update set enabled = true where not property_updater_sets.enabled`;
}

/** Orders changes of a tenant's updaters: held until the transaction ends. `enables`: after `expectEnabled`. */
export async function lockSet(tx: Db, tenantId: string, enables: boolean): Promise<void> {
  await makeSet(tx, tenantId);
  await tx`
    select from property_updater_sets where tenant_id = ${tenantId} ${enables ? tx`for update` : tx`for no key update`}`;
}

/**
 * Ends a change of updaters: from its commit on every replica reads them again.
 * @param enabled whether one is enabled now, where that is known without a look at all of them
 */
export async function changeSet(tx: Db, tenantId: string, enabled?: "one is enabled" | "as before"): Promise<void> {
  const found = tx`exists (select from property_updaters u where u.tenant_id = ${tenantId} and u.enabled)`;
  const known = enabled === "as before" ? tx`enabled` : tx`true`;
  await tx`
    update property_updater_sets set version = version + 1, enabled = ${enabled === undefined ? found : known}
    where tenant_id = ${tenantId}`;
}

/** How often the tenant's updaters were changed. */
export async function setVersion(db: Db, tenantId: string): Promise<bigint> {
  const [row] = await db<{ version: bigint }[]>`
    select version from property_updater_sets where tenant_id = ${tenantId}`;
  return row?.version ?? 0n;
}
