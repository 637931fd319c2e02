import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { inject, onTestFinished, type ProvidedContext } from "vitest";
import type { TestProject } from "vitest/node";
import { addressOptions, connect, type Pool, type PoolOptions, type Sql } from "../../src/db/connect.ts";
import { distribute } from "../../src/db/distribute.ts";
import { migrate } from "../../src/db/migrate.ts";
import { dataDirectoryOf, lockData } from "../../src/embedded/data-directory.ts";
import { startEmbedded } from "../../src/embedded/embedded.ts";
import { end, gone, readPidFile, serves } from "../../src/embedded/postmaster.ts";
import { atEnd } from "./at-end.ts";
import { onCitus, startCluster } from "./citus.ts";
import { copyCluster, makeCluster } from "./cluster.ts";

declare module "vitest" {
  interface ProvidedContext {
    /**
     * Address of the PostgreSQL of this run, its migrated database that each test file clones, and the run's directory; in a cluster
     * the addresses of all nodes, on each of which databases are made, and what starts those that do not run.
     */
    database: { url: string; template: string; dir: string; nodes?: string[]; start?: string[] };
  }
}

const prefix = "belfry-test-";
const quiet = { info() {}, warn: console.warn, error: console.error };

const inDatabase = (url: string, name: string) => Object.assign(new URL(url), { pathname: `/${name}` }).href;

async function administer<T>(url: string, fn: (sql: postgres.Sql) => Promise<T>, database = "postgres"): Promise<T> {
  const sql = postgres(inDatabase(url, database), {
    ...addressOptions(url),
    max: 1,
    onnotice: () => undefined,
    fetch_types: false,
  } as never);
  try {
    return await fn(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

function openDir(parent: string): string {
  const dir = mkdtempSync(join(parent, prefix));
  chmodSync(dir, 0o711);
  return dir;
}

/** A new directory that the unprivileged account of PostgreSQL may enter; gone with the run, at the latest. */
export function temporaryDir(): string {
  // Undefined where there is no globalSetup.
  const run = inject("database") as ProvidedContext["database"] | undefined;
  return openDir(run?.dir ?? tmpdir());
}

/** Such a directory with a migrated PostgreSQL in it that no server has started yet. */
export function clusterDir(): string {
  const dir = temporaryDir();
  copyCluster(dir);
  return dir;
}

/** Whether a run of this account has left the directory: that of another account is none of ours, whatever is in it. */
function isLeftover(dir: string): boolean {
  try {
    const own = lstatSync(dir);
    return own.isDirectory() && own.uid === process.getuid?.() && existsSync(join(dir, "lock"));
  } catch {
    return false; // gone meanwhile
  }
}

/** Removes what a killed run has left in a folder: its lock is free, its PostgreSQL may still run. */
export async function removeLeftovers(folder: string): Promise<void> {
  for (const name of readdirSync(folder)) {
    const dir = join(folder, name);
    if (!name.startsWith(prefix) || !isLeftover(dir)) continue;
    const lock = lockData(dir);
    if (lock === undefined) continue;
    const { data } = dataDirectoryOf(dir);
    const pid = readPidFile(data)?.pid;
    if (pid !== undefined && serves(pid, data)) await end({ pid, ended: gone(pid) }, "SIGQUIT", 5000);
    rmSync(join(dir, "postgres"), { recursive: true, force: true });
    lock.release();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Gives the run, and all processes that it starts, a place for temporary files that goes with it. */
function useOwnTemporaryFolder(dir: string): void {
  const folder = join(dir, "tmp");
  mkdirSync(folder);
  chmodSync(folder, 0o1777);
  process.env.TMPDIR = folder;
}

async function startServer(dir: string) {
  copyCluster(dir);
  const { url, adminUrl, stop } = await startEmbedded({
    dataDir: dir,
    log: quiet,
    durable: false,
    connectionsMax: 300,
  });
  await administer(adminUrl, (sql) => sql`alter role belfry createdb`);
  return { url, remove: () => stop("immediate") };
}

/** A cluster, and a database in it whose tables are distributed: databases are cloned node by node. */
async function setUpCluster(project: TestProject, given: string, dir: string) {
  const { urls, start, stop } = await startCluster(given, dir).catch((error) => {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  });
  const [url] = urls as [string];
  const template = new URL(url).pathname.slice(1);
  try {
    await migrate(url);
    // Few parts: each is a table that clones copy.
    await distribute(url, 4);
    for (const each of urls) await disconnect(each, template);
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide("database", { url, template, dir, nodes: urls, start });
  return stop;
}

/** Ends what Citus itself does in a database of a node, which could not be cloned meanwhile. */
const disconnect = (url: string, name: string) =>
  administer(url, (sql) => sql`select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = ${name}`);

async function cloneDatabase(name: string, from: string): Promise<void> {
  const { url, nodes = [url] } = inject("database");
  await Promise.all(nodes.map((each) => cloneAt(each, name, from)));
}

/** On a node that was started again since, Citus works in the database that is cloned. */
async function cloneAt(node: string, name: string, from: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return void (await administer(node, (sql) => sql.unsafe(`create database ${name} template ${from}`)));
    } catch (error) {
      if (attempt === 5 || (error as { code?: string }).code !== "55006") throw error;
      await disconnect(node, from);
    }
  }
}

/** Vitest's globalSetup: one PostgreSQL for the run (TEST_DATABASE_URL names another), one migrated template. */
export async function setup(project: TestProject) {
  await removeLeftovers(tmpdir());
  const dir = openDir(tmpdir());
  useOwnTemporaryFolder(dir);
  if (onCitus) return await setUpCluster(project, process.env.TEST_CITUS ?? "", dir);
  await makeCluster(join(dir, "cluster"));
  const given = process.env.TEST_DATABASE_URL;
  const template = `belfry_template_${randomBytes(4).toString("hex")}`;
  const { url, remove } = given ? { url: given, remove: () => dropShared(given, template) } : await startServer(dir);
  async function teardown() {
    await remove();
    rmSync(dir, { recursive: true, force: true });
  }
  try {
    const migrated = given ? "" : "template belfry";
    await administer(url, (sql) => sql.unsafe(`create database ${template} ${migrated}`));
    await migrate(inDatabase(url, template));
  } catch (error) {
    await teardown();
    throw error;
  }
  project.provide("database", { url, template, dir });
  return teardown;
}

export interface TestDatabase {
  readonly url: string;
  readonly pool: Pool;
  readonly sql: Sql;
  /** Closes the pool and drops the database; it happens by itself, as `atEnd` says. */
  drop(): Promise<void>;
}

/** Settings of a pool in tests, with the ones given. */
export const poolOptions = (options: Partial<PoolOptions> = {}): PoolOptions => ({
  poolConnectionsMax: 8,
  // Tests of what waits for what need a third beside a reader and a writer.
  counts: { questions: 3 },
  waitingCallsMax: 2000,
  // Ends what hangs, also on a machine that is busy with something else.
  statementTimeoutMs: 60_000,
  lockTimeoutMs: 5000,
  distributed: onCitus,
  ...options,
});

/**
 * Drops a database. PostgreSQL's own vacuum may be at work in it, which only a superuser can end, or on a busy machine what is ended
 * takes longer than PostgreSQL waits for it: both end soon by themselves.
 */
async function dropDatabase(address: string, name: string): Promise<void> {
  const { nodes = [address] } = inject("database");
  await Promise.all(nodes.map((each) => dropAt(each, name)));
}

/** Drops the template of a run and what its workers have made of it, on a PostgreSQL that outlives the run. */
async function dropShared(address: string, template: string): Promise<void> {
  const names = await administer(
    address,
    (sql) => sql<{ name: string }[]>`select datname as name from pg_database where starts_with(datname, ${template})`,
  );
  for (const { name } of names) await dropAt(address, name);
}

async function dropAt(address: string, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return void (await administer(address, (sql) => sql.unsafe(`drop database if exists ${name} with (force)`)));
    } catch (error) {
      if (attempt === 50 || !["42501", "55006"].includes((error as { code?: string }).code ?? "")) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

/** A migrated database of this test file's own, cloned from the template. Dropped as `atEnd` says. */
export async function testDatabase(options: Partial<PoolOptions> = {}): Promise<TestDatabase> {
  const database = await clonedDatabase(`belfry_test_${randomBytes(6).toString("hex")}`, options);
  atEnd(database.drop);
  return database;
}

/** A migrated database for all files of a worker, dropped at the end of the run. */
export function sharedDatabase(): Promise<TestDatabase> {
  return clonedDatabase(`${inject("database").template}_${process.pid}`, {});
}

async function clonedDatabase(name: string, options: Partial<PoolOptions>): Promise<TestDatabase> {
  const { url: address, template } = inject("database");
  await cloneDatabase(name, template);
  const url = inDatabase(address, name);
  const pool = connect(url, poolOptions(options));
  let dropped: Promise<void> | undefined;
  async function drop() {
    await pool.close();
    await dropDatabase(address, name);
  }
  return {
    url,
    pool,
    sql: pool.sql,
    drop: () => {
      dropped ??= drop();
      return dropped;
    },
  };
}

/** A database without a schema, or with all migrations, dropped when the test ends. */
export async function emptyDatabase({ migrated = false } = {}) {
  const { url: address, template } = inject("database");
  const name = `belfry_test_${randomBytes(6).toString("hex")}`;
  await cloneDatabase(name, migrated ? template : "template0");
  onTestFinished(async () => {
    await dropDatabase(address, name);
  });
  const url = inDatabase(address, name);
  return {
    url,
    query: (statement: string) => administer(url, async (sql) => [...(await sql.unsafe(statement))], name),
  };
}
