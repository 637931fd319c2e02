import type { Db } from "../db/connect.ts";
import { failedPrecondition } from "../errors.ts";

/**
 * Runs what takes keys away, within the caller's transaction, and sees to it that the last manager key of the tenant
 * that still holds is not among them. One such change of a tenant runs at a time. @throws code 9
 */
export async function keepManagerKey(tx: Db, tenantId: string, change: () => Promise<void>): Promise<void> {
  // Whoever would take the other one waits here. Making keys locks one client, so none of the two can wait in a circle.
  await tx`
    select id from api_clients where tenant_id = ${tenantId} and role = 'manager' order by id for no key update`;
  const before = await managerKeys(tx, tenantId);
  await change();
  if (before > 0n && (await managerKeys(tx, tenantId)) === 0n) {
    throw failedPrecondition("this is the last manager key of the tenant; create another one first");
  }
}

/** Manager keys that have not expired. */
async function managerKeys(tx: Db, tenantId: string): Promise<bigint> {
  const [row] = await tx<[{ count: bigint }]>`
    select count(*) as count from api_keys k
      join api_clients c on c.tenant_id = k.tenant_id and c.id = k.client_id
    where k.tenant_id = ${tenantId} and c.role = 'manager'
      and (k.expires_ms is null or k.expires_ms > (extract(epoch from clock_timestamp()) * 1000)::bigint)`;
  return row.count;
}
