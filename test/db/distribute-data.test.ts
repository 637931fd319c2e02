import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { exportTo } from "../../src/backup/export.ts";
import { transferCommand } from "../../src/cli/transfer.ts";
import { readConfig } from "../../src/config/settings.ts";
import { connectOnce, type Sql } from "../../src/db/connect.ts";
import { distribute } from "../../src/db/distribute.ts";
import { localTables, withLocalRows } from "../../src/db/distribution.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { version } from "../../src/version.ts";
import { nodesOfTenants } from "../faults/sending-tenants.ts";
import { onCitus } from "../support/citus.ts";
import { joinNodes, makeExtension } from "../support/citus-nodes.ts";
import { emptyDatabase, temporaryDir } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { fillTenant } from "../support/tenant-rows.ts";
import { v1 } from "../support/v1.ts";

const serverOn = (url: string) =>
  startServer(
    readConfig({
      DATABASE_URL: url,
      BELFRY_DATA_DIR: temporaryDir(),
      BELFRY_PORT: "0",
      BELFRY_PLAINTEXT: "1",
      BELFRY_SHUTDOWN_TIMEOUT: "500ms",
      BELFRY_MASTER_KEYS: masterKeys,
    }),
    openLog("silent"),
  );

/** How many rows each table holds, and a sum over their texts. */
async function rowsOf(sql: Sql) {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by relname`;
  const sums = new Map<string, unknown>();
  for (const { name } of tables) {
    const [sum] =
      await sql`select count(*) as rows, sum(hashtextextended(t::text, 0)::numeric)::text as sum from ${sql(name)} t`;
    sums.set(name, sum);
  }
  return sums;
}

test.runIf(onCitus)("a database with data is distributed with all of them, in 32 parts of each table", async () => {
  const { url } = await emptyDatabase();
  const nodes = inject("database").nodes as string[];
  await makeExtension(url, nodes);
  await expect(distribute(url, 32)).rejects.toThrow(
    /the coordinator does not know its own address: .*\nthere is no worker: select citus_add_node/,
  );
  await using stack = new AsyncDisposableStack();
  const { sql, close } = connectOnce(url, "test");
  stack.defer(close);
  await joinNodes(url, nodes);
  // Makes the schema, and the partitions of today.
  await (await serverOn(url)).stop();
  const tenants = await Promise.all(Array.from({ length: 4 }, () => testTenant(sql)));
  for (const { id } of tenants) await fillTenant(sql, id, 100);
  const before = await rowsOf(sql);

  const { tables } = await distribute(url, 32);

  expect(tables).toHaveLength(before.size - localTables.length);
  expect(await rowsOf(sql)).toEqual(before);
  expect(await withLocalRows(sql)).toEqual([]);
  const parts = await sql<{ name: string; parts: bigint }[]>`
    select logicalrelid::text as name, count(*) as parts from pg_dist_shard join pg_dist_partition using (logicalrelid)
    where partmethod = 'h' group by 1`;
  expect(parts.filter(({ parts }) => parts !== 32n)).toEqual([]);
  const places = await nodesOfTenants(sql);
  expect(tenants.map(({ id }) => places.get(id)?.size)).toEqual([1, 1, 1, 1]);
  expect(await distribute(url, 32)).toEqual({ tables: [], notes: [] });
  const server = await serverOn(url);
  stack.defer(() => server.stop());
  for (const { headers } of tenants) {
    const { status, body } = await v1(server.url, headers)("POST", "/v1/modelcontext/entities:search", {
      search_input: { query: { clause: { filter: { field: "host", operation: "OP_EXISTS" } } } },
    });
    expect([status, body.entities?.entities.length]).toEqual([200, 98]);
  }
});

test.runIf(onCitus)("an import into distributed tables is refused in one line, and writes nothing", async () => {
  await using stack = new AsyncDisposableStack();
  const [from, to] = [await emptyDatabase({ migrated: true }), await emptyDatabase({ migrated: true })];
  const [{ sql, close }, into] = [connectOnce(from.url, "test"), connectOnce(to.url, "test")];
  stack.defer(close);
  stack.defer(into.close);
  await testTenant(sql);
  const file = join(temporaryDir(), "export");
  await exportTo(from.url, file, version);
  const before = await rowsOf(into.sql);

  const run = transferCommand(["import", file], readConfig({ DATABASE_URL: to.url, BELFRY_DATA_DIR: temporaryDir() }));
  await expect(run?.(to.url)).rejects.toThrow(
    /^the database is distributed: import into a new one that is not, then call belfry distribute; nothing was imported$/,
  );

  expect(await rowsOf(into.sql)).toEqual(before);
  expect(before.get("tenants")).toEqual({ rows: 0n, sum: null });
});
