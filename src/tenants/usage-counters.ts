import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";
import { again } from "../db/transaction.ts";

/** What of a tenant's is counted: rows that data make and that have a bound. */
export type Counted = "entities" | "events" | "fields";

/** A query that finds how many a tenant has, as far as transactions are committed; no row: none ever. */
export const countOf = (db: Db, tenantId: string, what: Counted): Fragment =>
  db`select count from tenant_counts where tenant_id = ${tenantId} and what = ${what}`;

/** How many a tenant has, as far as transactions are committed. Takes no lock. */
export async function readCount(db: Db, tenantId: string, what: Counted): Promise<number> {
  const [row] = await db<{ count: bigint }[]>`${countOf(db, tenantId, what)}`;
  return Number(row?.count ?? 0n);
}

/**
 * Counts rows that the transaction has made, or removed (below 0). The makers of a tenant's wait here for each other until
 * the commit, so late in the transaction; what they make before is held against what is committed, and made again where others
 * were faster: never are there more than `countMax`.
 * @throws an error that makes `transaction` run again
 */
export async function addToCount(
  tx: Db,
  tenantId: string,
  what: Counted,
  made: number,
  countMax = Infinity,
): Promise<void> {
  if (made === 0) return;
  const [row] = await tx<[{ count: bigint }]>`
    insert into tenant_counts (tenant_id, what, count) values (${tenantId}, ${what}, ${made}::int4)
    on conflict (tenant_id, what) do update set count = tenant_counts.count + excluded.count
    returning count`;
  if (made > 0 && Number(row.count) > countMax) throw again(`others have made ${what} since`);
}

const leftOut = "left-out-fields";

/** Notes that some names of fields are not known, because there are too many of them. May be repeated. */
export async function noteLeftOut(tx: Db, tenantId: string): Promise<void> {
  const rows = await tx`${leftOutRow(tx, tenantId)}`;
  if (rows.count > 0) return;
  await tx`
    insert into tenant_counts (tenant_id, what, count) values (${tenantId}, ${leftOut}, 1) on conflict do nothing`;
}

/** A query that finds a row without columns where some names of fields of the tenant are not known. */
export const leftOutRow = (db: Db, tenantId: string): Fragment =>
  db`select from tenant_counts where tenant_id = ${tenantId} and what = ${leftOut}`;
