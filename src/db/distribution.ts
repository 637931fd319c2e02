import { connectOnce, type Db } from "./connect.ts";

/** Whether the tables of tenants lie distributed over nodes by Citus. */
export async function isDistributed(db: Db): Promise<boolean> {
  const [has] = await db<[{ citus: boolean }]>`select to_regclass('pg_catalog.pg_dist_partition') is not null as citus`;
  if (!has.citus) return false;
  const [row] = await db<[{ distributed: boolean }]>`
    select exists (
      select from pg_dist_partition where logicalrel = 'tenant_state'::regclass and partmethod = 'h'
    ) as distributed`;
  return row.distributed;
}

/** The same of the database at an address, asked once before it is used. */
export async function distributedAt(url: string): Promise<boolean> {
  const { sql, close } = connectOnce(url, "belfry start");
  try {
    return await isDistributed(sql);
  } finally {
    await close();
  }
}
