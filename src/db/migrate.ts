import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { version as ownVersion, program } from "../version.ts";
import { checkServer, connectOnce, type Db, type Sql } from "./connect.ts";
import { distributeNew, migrateInTurn } from "./distribution.ts";
import { beginFormats } from "./formats.ts";
import { sessionName } from "./session-name.ts";
import { StartError } from "./start-error.ts";
import { transaction } from "./transaction.ts";

interface Migration {
  name: string;
  digest: string;
  statements: string[];
  /** Its statements run one by one, each of which may be repeated, instead of all in one transaction. */
  outside: boolean;
  /** The oldest version that may serve on the database afterwards; undefined: those that know the file. */
  oldestServer: string | undefined;
}

/** The database was migrated by a newer version, beside which this one may not serve. */
export class SchemaTooNew extends StartError {
  override name = "SchemaTooNew";
}

export const migrationsDir = join(import.meta.dirname, "../../migrations");

/** The line at the begin of a file whose statements cannot run in a transaction. */
export const outsideMark = "-- outside of a transaction";

const oldestServerLine = /^-- oldest server: (\d+\.\d+\.\d+)$/m;

// Any number will do, as long as every version of this server takes the same.
const lockKey = 7_206_551_846_342_183n;

const pollMs = 200;
// Data that waits longer than 1 s is refused.
const usualLockTimeoutMs = 500;

interface Log {
  info(message: string): void;
}

interface MigrateOptions {
  dir?: string;
  /** How many of the files, from the first on; all when left out. */
  count?: number;
  /** The version that migrates. */
  version?: string;
  /** How long one attempt waits for a lock: this long others may have to wait behind it. */
  lockTimeoutMs?: number;
  /** For how long a file is attempted again while others hold what it needs. */
  lockedMsMax?: number;
  /** Whether no server has used the database, although it has migrations: it is being imported. */
  unused?: boolean;
  /** Gets a line for each thing that takes long. */
  log?: Log;
}

function readMigrations(dir: string): Migration[] {
  const journal = JSON.parse(readFileSync(join(dir, "meta/_journal.json"), "utf8")) as { entries: { tag: string }[] };
  return journal.entries.map(({ tag }) => {
    const text = readFileSync(join(dir, `${tag}.sql`), "utf8");
    const digest = createHash("sha256").update(text).digest("hex");
    const statements = text.split("--> statement-breakpoint");
    const [head = ""] = statements;
    const oldestServer = oldestServerLine.exec(head)?.[1];
    return { name: tag, digest, statements, outside: head.split("\n").includes(outsideMark), oldestServer };
  });
}

/** The migrations of this version, in order. */
export function knownMigrations(): { name: string; digest: string }[] {
  return readMigrations(migrationsDir).map(({ name, digest }) => ({ name, digest }));
}

/** The migrations that a database has, in order. It has been migrated. */
export async function appliedMigrations(db: Db): Promise<{ name: string; digest: string }[]> {
  return [...(await db<{ name: string; digest: string }[]>`select name, digest from migrations order by name`)];
}

/** Whether the first version is newer than the second: both MAJOR.MINOR.PATCH, each perhaps with more after a hyphen. */
function newer(first: string, second: string): boolean {
  const numbers = (text: string) => text.split("-", 1)[0]?.split(".").map(Number) ?? [];
  const [one, other] = [numbers(first), numbers(second)];
  const at = one.findIndex((number, i) => number !== other[i]);
  return at >= 0 && (one[at] ?? 0) > (other[at] ?? 0);
}

/** @throws StartError on a database that a version before the first release has made, whose migrations are not kept. */
async function checkReleased(db: Db): Promise<void> {
  const [found] = await db<{ named: boolean }[]>`
    select exists (select from pg_attribute where attrelid = to_regclass('migrations') and attname = 'oldest_server') as named`;
  if (found?.named) return;
  throw new StartError(
    "the database was made by a version before 0.1.0, the first release, which no release takes over: start on an empty one (another BELFRY_DATA_DIR or DATABASE_URL)",
  );
}

/** The last migration of 0.3.0. */
const lastOf03 = "0021_grouping";
/** The first migration of 0.4.0. */
const firstOf04 = "0026_closed-by";

/**
 * Refuses what only a server of 0.3 can take over: a database on which one of 0.2 may still run, whose changes nobody would hold against rules.
 * @throws StartError
 */
async function checkUpgradable(db: Db): Promise<void> {
  await checkReleased(db);
  const [begun] = await db<{ is03: boolean }[]>`
    select exists (select from migrations where name = ${lastOf03}) as "is03" from migrations limit 1`;
  if (begun === undefined) return;
  if (begun.is03) return await checkMatched(db);
  // A server that has ever led here has left a row.
  const [used] = await db<{ isUsed: boolean }[]>`select to_regclass('leases') is not null as "isUsed"`;
  if (!used?.isUsed || (await db`select from leases limit 1`).count === 0) return;
  throw new StartError(
    "the database is of a version before 0.3.0, which this one does not take over: start Belfry 0.3.1 on it, and this one when that serves",
  );
}

/**
 * Refuses a database that 0.4 is about to take over while changes of events are left that 0.2 has not held against rules: only 0.3 reads them.
 * @throws StartError
 */
export async function checkMatched(db: Db): Promise<void> {
  // Asked once only: with distributed tables the answer needs every node, and a server starts without one.
  if ((await db`select from migrations where name = ${firstOf04}`).count > 0) return;
  if ((await db`select from unmatched_changes limit 1`).count === 0) return;
  throw new StartError(
    "changes of events are left that Belfry 0.2 has stored and only 0.3 holds against rules: start or import it with Belfry 0.3.1, and with this version once belfry_due_jobs of kind notifications.match is 0",
  );
}

/** What of these files the database lacks. */
async function pending(db: Db, migrations: Migration[], version: string): Promise<Migration[]> {
  await checkReleased(db);
  const rows = await db<{ name: string; digest: string; oldestServer: string | null }[]>`
    select name, digest, oldest_server as "oldestServer" from migrations order by name`;
  const applied = new Map(rows.map(({ name, digest }) => [name, digest]));
  const known = new Set(migrations.map(({ name }) => name));
  const foreign = rows.filter(({ name }) => !known.has(name));
  for (const { name, oldestServer } of foreign) {
    if (oldestServer !== null && !newer(oldestServer, version)) continue;
    throw new SchemaTooNew(
      `the database is newer than this server, Belfry ${version}: its migration ${name} needs ${oldestServer === null ? "the version that made it" : `Belfry ${oldestServer}`} or a newer one; start that`,
    );
  }
  return migrations.filter(({ name, digest }) => {
    const before = applied.get(name);
    if (before === undefined || before === digest) return before === undefined;
    throw new StartError(
      `the migration ${name} is not the one that the database has applied: until its release it could still change. ` +
        "Start the version that made the database, or this one on an empty one (another BELFRY_DATA_DIR or DATABASE_URL)",
    );
  });
}

const record = (db: Db, { name, digest, oldestServer }: Migration) =>
  db`insert into migrations (name, digest, oldest_server) values (${name}, ${digest}, ${oldestServer ?? null})`;

async function applyInside(sql: Sql, migration: Migration, lockTimeoutMs: number): Promise<void> {
  await transaction(sql, async (tx) => {
    await tx.unsafe(`set local lock_timeout = ${lockTimeoutMs}`);
    await migrateInTurn(tx);
    for (const statement of migration.statements) await tx.unsafe(statement);
    await distributeNew(tx);
    await record(tx, migration);
  });
}

async function applyOutside(sql: Sql, migration: Migration, lockTimeoutMs: number): Promise<void> {
  for (const statement of migration.statements) {
    const concurrent = /\bindex\s+concurrently\b/i.test(statement);
    const made = /\bcreate\s+(?:unique\s+)?index\s+concurrently\s+(?:if\s+not\s+exists\s+)?("?\w+"?)/i.exec(
      statement,
    )?.[1];
    if (made !== undefined) {
      const [index] = await sql<{ valid: boolean }[]>`
        select indisvalid as valid from pg_index where indexrelid = to_regclass(${made}::text)`;
      if (index?.valid) continue;
      // One that was cut off stays, is kept current by every write, and serves no search.
      if (index !== undefined) await sql.unsafe(`drop index concurrently ${made}`);
    }
    // A concurrent statement waits for transactions older than itself; no other statement waits behind it.
    await sql.unsafe(`set lock_timeout = ${concurrent ? 0 : lockTimeoutMs}`);
    await sql.unsafe(statement);
  }
  await record(sql, migration);
}

/** Applies one file, again while others hold what it needs. @throws StartError when they have held it for too long. */
async function apply(
  sql: Sql,
  migration: Migration,
  options: Required<Omit<MigrateOptions, "dir" | "count" | "version" | "unused">>,
): Promise<void> {
  const { lockTimeoutMs, lockedMsMax, log } = options;
  const untilMs = performance.now() + lockedMsMax;
  for (let pauseMs = lockTimeoutMs; ; pauseMs = Math.min(pauseMs * 2, 20 * lockTimeoutMs)) {
    try {
      return await (migration.outside ? applyOutside : applyInside)(sql, migration, lockTimeoutMs);
    } catch (error) {
      if ((error as { code?: string }).code !== "55P03") throw error;
      if (performance.now() > untilMs) {
        throw new StartError(
          `the migration ${migration.name} needs a lock that other transactions have held for ${Math.round(lockedMsMax / 1000)} s; end them (pg_stat_activity shows them), and start again`,
        );
      }
      log.info(`the migration ${migration.name} waits for other transactions, and is tried again`);
      // What has queued behind this attempt goes first.
      await sleep(pauseMs * (0.5 + Math.random()));
    }
  }
}

/**
 * Waits until this connection alone may migrate. By attempts: one that waited in a statement would keep a snapshot, and an
 * index that another server makes concurrently would wait for it in turn.
 */
export async function lockMigrations(sql: Sql, log: Log = { info() {} }): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const [row] = await sql<{ locked: boolean }[]>`select pg_try_advisory_lock(${lockKey}) as locked`;
    if (row?.locked) return;
    if (attempt === 5000 / pollMs) log.info("another server is migrating the database; this one waits for it");
    await sleep(pollMs);
  }
}

/**
 * Applies the migrations that the database lacks, in order, and answers their names. One transaction a file, so that a
 * failed one leaves those before it and nothing of itself; a file that begins with `outsideMark` statement by statement,
 * and the next run goes on where it was cut off. Attempts to get a lock are short, so that a database in use stays in use.
 * Any number of servers may migrate at once: one works while the others wait. May be repeated.
 * @throws SchemaTooNew, and StartError when the database cannot be used
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<string[]> {
  const {
    dir = migrationsDir,
    lockTimeoutMs = usualLockTimeoutMs,
    lockedMsMax = 300_000,
    log = { info() {} },
  } = options;
  const { version = ownVersion } = options;
  const migrations = readMigrations(dir).slice(0, options.count);
  const { sql, close } = connectOnce(url, sessionName("migrate"));
  try {
    await checkServer(sql);
    const names: string[] = [];
    for (;;) {
      // For each file again: a connection that broke in between took the lock with it.
      await lockMigrations(sql, log);
      await sql`
        create table if not exists migrations (
          name text collate "C" primary key, digest text not null, oldest_server text,
          applied_at timestamptz not null default now()
        )`;
      if (!options.unused && names.length === 0) await checkUpgradable(sql);
      const [next] = await pending(sql, migrations, version);
      if (next === undefined) {
        if (options.unused || names[0] === migrations[0]?.name) await beginFormats(sql);
        return names;
      }
      await apply(sql, next, { lockTimeoutMs, lockedMsMax, log });
      names.push(next.name);
    }
  } finally {
    await close();
  }
}

/** Checks that the database has all migrations, for commands that apply none. @throws StartError when it has not. */
export async function checkMigrated(url: string, { dir = migrationsDir, version = ownVersion } = {}): Promise<void> {
  const { sql, close } = connectOnce(url, sessionName("command"));
  try {
    await checkServer(sql);
    const migrations = readMigrations(dir);
    const [found] = await sql<{ begun: boolean }[]>`select to_regclass('migrations') is not null as begun`;
    const [next] = found?.begun ? await pending(sql, migrations, version) : migrations;
    if (next === undefined) return;
    throw new StartError(
      `the database lacks the migration ${next.name}; start the server, or run ${program} migrate, and then this again`,
    );
  } finally {
    await close();
  }
}
