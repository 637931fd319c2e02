import { textArray } from "./batch.ts";
import { connectOnce, type Db } from "./connect.ts";
import { sessionName } from "./session-name.ts";

/** Tables of the coordinator alone: they belong to no tenant, or are read before the tenant is known, and are joined with none. */
export const localTables = ["api_key_prefixes", "leases", "master_keys", "migrations"];
/** A copy of it lies on every node: each tenant's rows lead to it. */
export const referenceTable = "tenants";
/** The first to be distributed. All others lie with it, so that a tenant's rows are on one node. */
const firstTable = "tenant_state";

/** Whether the tables of tenants lie distributed over nodes by Citus. */
export async function isDistributed(db: Db): Promise<boolean> {
  const [has] = await db<[{ citus: boolean }]>`select to_regclass('pg_catalog.pg_dist_partition') is not null as citus`;
  if (!has.citus) return false;
  const [row] = await db<[{ distributed: boolean }]>`
    select exists (
      select from pg_dist_partition where logicalrelid = to_regclass('tenant_state') and partmethod = 'h'
    ) as distributed`;
  return row.distributed;
}

/** The same of the database at an address, asked once before it is used. */
export async function distributedAt(url: string): Promise<boolean> {
  const { sql, close } = connectOnce(url, sessionName("start"));
  try {
    return await isDistributed(sql);
  } finally {
    await close();
  }
}

/** Distributes what a migration has made, in its transaction, where the tables of tenants are distributed. */
export async function distributeNew(tx: Db): Promise<void> {
  if (await isDistributed(tx)) await distributeTables(tx);
}

/** What a migration needs before its first statement, where tables are distributed: one node after the other, in one transaction. */
export async function migrateInTurn(tx: Db): Promise<void> {
  if (await isDistributed(tx)) await tx`set local citus.multi_shard_modify_mode = 'sequential'`;
}

interface ForeignKey {
  table: string;
  name: string;
  definition: string;
}

/** Distributes the tables that are not, in the caller's transaction, and returns their names. */
export async function distributeTables(tx: Db, shards?: number): Promise<string[]> {
  const tables = await undistributed(tx);
  if (tables.length === 0) return [];
  await tx`set local citus.multi_shard_modify_mode = 'sequential'`;
  const keys = await tx<ForeignKey[]>`
    select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as definition
    from pg_constraint
    where contype = 'f' and conparentid = 0
      and (conrelid = any(${textArray(tables)}::text[]::regclass[]) or confrelid = any(${textArray(tables)}::text[]::regclass[]))
    order by 1, 2`;
  for (const { table, name } of keys) await tx.unsafe(`alter table ${table} drop constraint "${name}"`);
  for (const table of tables) {
    if (table === referenceTable) await tx`select create_reference_table(${table}::text::regclass)`;
    else if (table === firstTable) {
      await tx`
        select create_distributed_table(${table}::text::regclass, 'tenant_id', shard_count => ${shards ?? 32}::int4,
          colocate_with => 'none')`;
    } else {
      await tx`
        select create_distributed_table(${table}::text::regclass, 'tenant_id', colocate_with => ${firstTable}::text)`;
    }
  }
  for (const { table, name, definition } of keys) {
    await tx.unsafe(`alter table ${table} add constraint "${name}" ${definition}`);
  }
  return tables;
}

/** Tables that ought to be distributed and are not: the first ones first. */
async function undistributed(db: Db): Promise<string[]> {
  const rows = await db<{ name: string }[]>`
    select relname as name from pg_class c
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
      and relname <> all(${textArray(localTables)}::text[])
      -- Citus itself knows a table that a foreign key ties to a reference table, and leaves it on the coordinator.
      and not exists (
        select from pg_dist_partition p where p.logicalrelid = c.oid and (p.partmethod = 'h' or p.repmodel = 't')
      )
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
    order by relname <> ${referenceTable}, relname <> ${firstTable}, relname`;
  return rows.map(({ name }) => name);
}

/** Distributed tables, and the one with copies, that still have what was on the coordinator before. Partitions count to their table. */
export async function withLocalRows(db: Db): Promise<string[]> {
  const rows = await db<{ name: string }[]>`
    select c.relname as name from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
    where (p.partmethod = 'h' or p.repmodel = 't') and not c.relispartition
      and (
        select sum(pg_relation_size(part.relid))
        from (select c.oid as relid union select relid from pg_partition_tree(c.oid)) part
      ) > 0
    order by c.relname <> ${referenceTable}, c.relname <> ${firstTable}, c.relname`;
  return rows.map(({ name }) => name);
}
