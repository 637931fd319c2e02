import type { Fragment } from "postgres";
import type { Db } from "./connect.ts";

/*
 * Each tenant has a row of tenant_state, from which inserts of selected rows take their tenant: where tables are distributed by tenant,
 * such a statement goes as a whole to the node of that row (design/statements). It is made with the tenant.
 */

/** The row of a tenant as a source of rows, `home`. */
export const home = (db: Db, tenantId: string): Fragment =>
  db`(select tenant_id from tenant_state where tenant_id = ${tenantId}) as home`;

/** Makes the rows of tenants that came without it, as in a file that was changed before its import. An earlier schema has no such rows. */
export async function makeHomes(db: Db): Promise<void> {
  const [found] = await db<{ there: boolean }[]>`select to_regclass('tenant_state') is not null as there`;
  if (!found?.there) return;
  await db`insert into tenant_state (tenant_id) select id from tenants on conflict do nothing`;
}

/** Makes the row of a tenant. May be repeated. */
export async function makeHome(db: Db, tenantId: string): Promise<void> {
  await db`insert into tenant_state (tenant_id) values (${tenantId}) on conflict do nothing`;
}
