import type { Fragment, PendingQuery, RowList } from "postgres";
import type { Db, Sql } from "./connect.ts";

/*
 * Each tenant has a row of tenant_state, from which inserts of selected rows take their tenant: where tables are distributed by tenant,
 * such a statement goes as a whole to the node of that row (design/statements). It is made with the tenant; a server of 0.1.0
 * makes it late.
 */

/** The row of a tenant as a source of rows, `home`. Without it a statement would store nothing: see `fromHome`. */
export const home = (db: Db, tenantId: string): Fragment =>
  db`(select tenant_id from tenant_state where tenant_id = ${tenantId}) as home`;

/** Makes the row of a tenant. May be repeated. */
export async function makeHome(db: Db, tenantId: string): Promise<void> {
  await db`insert into tenant_state (tenant_id) values (${tenantId}) on conflict do nothing`;
}

const homeRow = (db: Db, tenantId: string) => db`select from tenant_state where tenant_id = ${tenantId}`.execute();

/** What `transaction` mends before it runs again. */
export interface Mendable {
  mend(db: Db): Promise<void>;
}

/** An error that makes `transaction` make the row and run again */
export function lacksHome(tenantId: string): Error & Mendable {
  const error = new Error(`the tenant ${tenantId} has no row in tenant_state: nothing was stored`);
  return Object.assign(error, { code: "40001", mend: (db: Db) => makeHome(db, tenantId) });
}

/**
 * Sends a statement that takes its tenant from `home`, and returns its rows. Where nothing was stored because the tenant has no such
 * row, the row is made and the statement sent again, with all of its transaction.
 * @param seldom whether the statement seldom stores anything: the row is then looked for beside it, not after it
 */
export async function fromHome<T extends readonly (object | undefined)[]>(
  db: Db,
  tenantId: string,
  insert: () => PendingQuery<T>,
  seldom = false,
): Promise<RowList<T>> {
  const sent = insert().execute();
  const beside = seldom ? homeRow(db, tenantId) : undefined;
  beside?.catch(() => undefined); // where both fail, the first says why
  const rows = await sent;
  if (rows.count > 0) return rows;
  const { count } = await (beside ?? homeRow(db, tenantId));
  if (count > 0) return rows;
  if (!("begin" in db)) throw lacksHome(tenantId);
  await makeHome(db as Sql, tenantId);
  return await insert();
}
