import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { distributeCommand } from "../../src/cli/distribute.ts";
import { distribute } from "../../src/db/distribute.ts";
import {
  distributeNew,
  distributeTables,
  isDistributed,
  localTables,
  migrateInTurn,
  withLocalRows,
} from "../../src/db/distribution.ts";
import { transaction } from "../../src/db/transaction.ts";
import { dueLanes } from "../../src/jobs/due-lanes.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { onCitus } from "../support/citus.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";

const { pool, sql, url } = await testDatabase();

test.runIf(!onCitus)("a database without Citus is not distributed, and the error says what it lacks", async () => {
  expect(await isDistributed(sql)).toBe(false);
  await expect(distribute(url, 32)).rejects.toThrow("the extension citus is not in this database");
});

test("the command takes a number of shards, and a database that DATABASE_URL names", () => {
  const config = { databaseUrl: url };
  expect(distributeCommand(["distribute", "--shards", "16"], config)).toBeTypeOf("function");
  expect(distributeCommand(["migrate"], config)).toBeUndefined();
  expect(distributeCommand(["distribute", "now"], config)).toBeUndefined();
  expect(() => distributeCommand(["distribute", "--shards", "x"], config)).toThrow("from 1 to 1024");
  expect(() => distributeCommand(["distribute"], { databaseUrl: undefined })).toThrow("DATABASE_URL");
});

const tablesOfTenants = () => sql<{ name: string; here: boolean }[]>`
  select c.relname as name, not exists (
      select from pg_dist_partition p where p.logicalrelid = c.oid and p.partmethod = 'h'
    ) as here
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')`;

test.runIf(onCitus)("no tenants' table is on the coordinator alone; distributing again changes nothing", async () => {
  expect(await isDistributed(sql)).toBe(true);
  const tables = await tablesOfTenants();
  expect(tables.length).toBeGreaterThan(20);
  expect(tables.filter(({ here, name }) => here && !localTables.includes(name))).toEqual([]);
  expect(await distribute(url, 8)).toEqual({ tables: [], notes: [] });
});

test.runIf(onCitus)("the next run removes what an interrupted one left on the coordinator, nothing else", async () => {
  const { id } = await testTenant(sql);
  await sql`create table leftovers (tenant_id uuid not null, id int, primary key (tenant_id, id))`;
  await sql`insert into leftovers (tenant_id, id) values (${id}, 1)`;
  await transaction(sql, (tx) => distributeTables(tx));
  expect(await withLocalRows(sql)).toEqual(["leftovers"]);
  await distribute(url, 8);
  expect(await withLocalRows(sql)).toEqual([]);
  expect(await sql`select id from leftovers where tenant_id = ${id}`).toEqual([{ id: 1 }]);
});

test.runIf(onCitus)("a table that a migration makes is distributed with it", async () => {
  await transaction(sql, async (tx) => {
    await migrateInTurn(tx);
    await tx.unsafe(`create table notes (tenant_id uuid not null, id int, name text, primary key (tenant_id, id))`);
    await tx.unsafe(`create index notes_name on notes (tenant_id, name)`);
    await tx.unsafe(`alter table notes add foreign key (tenant_id) references tenants (id)`);
    await distributeNew(tx);
  });
  expect((await tablesOfTenants()).filter(({ name }) => name === "notes")).toEqual([{ name: "notes", here: false }]);
  const tenant = await testTenant(sql);
  await sql`insert into notes (tenant_id, id, name) values (${tenant.id}, 1, 'a')`;
  await expect(sql`insert into notes (tenant_id, id, name) values (${randomUUID()}, 1, 'a')`).rejects.toThrow(
    "foreign key",
  );
});

test.runIf(onCitus)("due work is found on every worker, the first due first", async () => {
  const tenants = await Promise.all(Array.from({ length: 8 }, () => testTenant(sql)));
  for (const [i, { id }] of tenants.entries()) {
    await transaction(sql, (tx) => enqueue(tx, { tenantId: id, kind: "spread" }, [{ payload: 1 }], 1000 + i));
  }
  const lanes = await dueLanes(pool, ["spread"], 1006);
  expect(lanes.map(({ tenantId }) => tenantId)).toEqual(tenants.slice(0, 7).map(({ id }) => id));
  const nodes = await sql<{ nodes: bigint }[]>`
    select count(distinct nodeport) as nodes from pg_dist_shard_placement
    where shardid in (select get_shard_id_for_distribution_column('due_work', t.id) from tenants t)`;
  expect(nodes).toEqual([{ nodes: 2n }]);
  expect(pool.workers?.stats()).toEqual([
    [expect.any(String), true],
    [expect.any(String), true],
  ]);
});
