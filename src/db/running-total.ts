import type { Db } from "./connect.ts";

/** How many things of a kind a tenant has, and their size together: bytes, or what else the kind adds up. */
export interface Total {
  readonly count: number;
  readonly size: number;
}

/** A change of a total, and what decides whether it is summed up anew. */
export interface Addition {
  /** Which total of the tenant's. */
  readonly what: string;
  readonly growth: Total;
  /** Whether the bounds allow a total. */
  fits(total: Total): boolean;
  /** Reads all rows of the kind. */
  sum(): Promise<Total>;
}

/** How long a total is believed, ms: a 0.3.0 server beside this one writes things and adds nothing (design/statements). */
const validMs = 600_000;

/** Holds a total until the transaction ends: others that add to it wait. */
export async function holdTotal(tx: Db, tenantId: string, what: string): Promise<void> {
  await tx`
    insert into tenant_counts (tenant_id, what, count) values (${tenantId}, ${what}, 0)
    on conflict (tenant_id, what) do update set count = tenant_counts.count`;
}

/**
 * Adds to a total what the transaction has written, and returns it; others that add to it wait until the transaction ends. It may be too
 * large, because nothing is taken off for what is deleted: one that does not fit, is unknown (0 things) or old is summed up under the lock.
 */
export async function addToTotal(tx: Db, tenantId: string, { what, growth, fits, sum }: Addition): Promise<Total> {
  const [kept] = await tx<Total[]>`
    update tenant_counts set count = count + ${growth.count}::int4, size = size + ${BigInt(growth.size)}
    where tenant_id = ${tenantId} and what = ${what} and count > 0
      and counted_ms > (extract(epoch from statement_timestamp()) * 1000)::int8 - ${validMs}::int4
    returning count::float8 as count, size::float8 as size`;
  if (kept !== undefined && fits(kept)) return kept;
  await holdTotal(tx, tenantId, what);
  const total = await sum();
  await tx`
    update tenant_counts set count = ${BigInt(total.count)}, size = ${BigInt(total.size)},
      counted_ms = (extract(epoch from statement_timestamp()) * 1000)::int8
    where tenant_id = ${tenantId} and what = ${what}`;
  return total;
}
