import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { createClient, createKey } from "../../src/auth/create-tenant.ts";
import { exportTo } from "../../src/backup/export.ts";
import { consoleUsage } from "../../src/cli/console.ts";
import { credentialUsage } from "../../src/cli/credentials.ts";
import { distributeUsage } from "../../src/cli/distribute.ts";
import { schemaUsage } from "../../src/cli/schema.ts";
import { tenantUsage } from "../../src/cli/tenants.ts";
import { transferUsage } from "../../src/cli/transfer.ts";
import type { Sql } from "../../src/db/connect.ts";
import { migrate } from "../../src/db/migrate.ts";
import { version } from "../../src/version.ts";
import { onCitus } from "../support/citus.ts";
import { joinNodes } from "../support/citus-nodes.ts";
import { emptyDatabase, temporaryDir } from "../support/database.ts";
import { compiled, program } from "../support/program.ts";
import { masterKeys, testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { firstProcessIn, pidFileOf, startNodes } from "./citus-cluster.ts";
import { killProcesses } from "./postgres-process.ts";
import { tenantsAt } from "./sending-tenants.ts";
import { serverProcess } from "./server-process.ts";

/** A client for each thing that is done to one, with a key. */
async function clientsOf(sql: Sql, { id: tenantId }: TestTenant) {
  async function make(name: string) {
    const { id } = await createClient(sql, tenantId, { name, type: "DATA_INGEST", role: null });
    const key = await createKey(sql, tenantId, id, { description: "", expiresMs: null });
    return { id, key: key.id };
  }
  return { kept: await make("kept"), revoked: await make("revoked"), deleted: await make("deleted") };
}

/** A migrated database of the cluster whose tables are not distributed yet. */
async function undistributed(): Promise<string> {
  const { url } = await emptyDatabase();
  await joinNodes(url, inject("database").nodes as string[]);
  await migrate(url);
  return url;
}

/** A distributed database that lacks a migration. */
async function withoutMigration(): Promise<string> {
  const { url, query } = await emptyDatabase({ migrated: true });
  await query("alter table series drop column instrument");
  await query("delete from migrations where name = '0014_instruments'");
  return url;
}

/** Of the days that deliveries are kept by, the last one that has a table. */
async function lastPartition(sql: Sql): Promise<string> {
  const [row] = await sql<[{ last: string }]>`
    select max(inhrelid::regclass::text) as last from pg_inherits where inhparent = 'delivery_history'::regclass`;
  return row.last;
}

/** Runs a command line to its end: its exit code, and what it said on standard error. */
async function ended(url: string, command: readonly string[]): Promise<string> {
  const { PATH = "", HOME = "" } = process.env;
  const env = { PATH, HOME, NODE_COMPILE_CACHE: compiled, DATABASE_URL: url, BELFRY_MASTER_KEYS: masterKeys };
  const ran = promisify(execFile)(process.execPath, [await program(), ...command], { env, timeout: 60_000 });
  return await ran.then(
    ({ stderr }) => `0 ${stderr}`,
    ({ code, stderr }) => `${code} ${stderr}`,
  );
}

const done = /^0 $/;
const away =
  /^(?:1 |the server did not start: )belfry: a node of the database is away \([^\n]+\); new tenants and changes of the schema need every node, other commands that of their tenant\n$/;

type Row = [command: string[], ends: RegExp, url?: string];

/** What each command ends with that is about one tenant. */
function ofTenant({ name }: TestTenant, clients: Awaited<ReturnType<typeof clientsOf>>, ends: RegExp): Row[] {
  const { kept, revoked, deleted } = clients;
  return [
    [["clients", "create", name, "late", "DATA_INGEST"], ends],
    [["clients", "list", name], ends],
    [["clients", "delete", name, deleted.id], ends],
    [["keys", "create", name, kept.id], ends],
    [["keys", "list", name, kept.id], ends],
    [["keys", "revoke", name, revoked.id, revoked.key], ends],
    [["console", "--tenant", name], ends],
  ];
}

/** The first words of a command, as its usage has them. */
const wordsOf = (call: string) => /^[a-z]*(?: [a-z]+)?/.exec(call)?.[0] ?? "";
const usage = [tenantUsage, consoleUsage, credentialUsage, transferUsage, distributeUsage, schemaUsage];
const allCommands = ["migrate", ...usage.flatMap((rows) => rows.map(([call]) => wordsOf(call))).filter(Boolean)];
const commandOf = (command: string[]) => allCommands.find((words) => command.join(" ").startsWith(words));

test.runIf(onCitus)("with a worker away each command does its work, or ends in one line that says so", async () => {
  await using stack = new AsyncDisposableStack();
  const { database } = await testServer({});
  const { sql, url } = database;
  const { nodes, start } = inject("database") as { nodes: string[]; start: string[] };
  const lost = nodes.at(-1) as string;
  const tenants = await Promise.all(Array.from({ length: 8 }, () => testTenant(sql)));
  const there = await tenantsAt(sql, Number(new URL(lost).port));
  const own = tenants.find(({ id }) => there.has(id)) as TestTenant;
  const other = tenants.find(({ id }) => !there.has(id)) as TestTenant;
  const dir = temporaryDir();
  const exported = join(dir, "before");
  await exportTo(url, exported, version);
  const [clients, others] = [await clientsOf(sql, own), await clientsOf(sql, other)];
  const rows: Row[] = [
    [["migrate"], done],
    [["migrate"], away, await withoutMigration()],
    [["tenants", "create", "late"], away],
    [["tenants", "list"], done],
    ...ofTenant(other, others, done),
    ...ofTenant(own, clients, away),
    [["credentials", "rotate"], away],
    [["export", join(dir, "export")], /^1 belfry: the export failed \([^\n]+\); no file was written\n$/],
    [["import", exported], /^1 belfry: the database is distributed: [^\n]+; nothing was imported\n$/],
    [["distribute"], done],
    [["distribute"], away, await undistributed()],
    [["schema", "export", join(dir, "schema")], done],
  ];
  expect(new Set(rows.map(([command]) => commandOf(command)))).toEqual(new Set(allCommands));

  const neverServed = (await emptyDatabase({ migrated: true })).url;
  // As on the next day.
  await sql.unsafe(`drop table ${await lastPartition(sql)}`);
  await killProcesses(firstProcessIn(await pidFileOf(lost)));
  stack.defer(() => startNodes(start));

  const wrong: string[] = [];
  for (const [command, ends, of = url] of rows) {
    const result = await ended(of, command);
    if (!ends.test(result)) wrong.push(`${command.join(" ")}: ${result}`);
  }
  expect(wrong).toEqual([]);
  expect(existsSync(join(dir, "export"))).toBe(false);

  const settings = { BELFRY_MASTER_KEYS: masterKeys, BELFRY_DATA_DIR: temporaryDir() };
  const server = await serverProcess({ ...settings, DATABASE_URL: url });
  await server.start();
  await server.stop();
  const first = await serverProcess({ ...settings, DATABASE_URL: neverServed });
  await expect(first.start()).rejects.toThrow(away);
});
