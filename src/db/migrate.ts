import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkServer, connectOnce, type Db } from "./connect.ts";
import { StartError } from "./start-error.ts";
import { transaction } from "./transaction.ts";

interface Migration {
  name: string;
  digest: string;
  statements: string[];
}

/** The database was migrated by a newer version of this server. */
export class SchemaTooNew extends StartError {
  override name = "SchemaTooNew";
}

export const migrationsDir = join(import.meta.dirname, "../../migrations");

// Any number will do, as long as every version of this server takes the same.
const lockKey = 7_206_551_846_342_183n;

function readMigrations(dir: string): Migration[] {
  const journal = JSON.parse(readFileSync(join(dir, "meta/_journal.json"), "utf8")) as { entries: { tag: string }[] };
  return journal.entries.map(({ tag }) => {
    const text = readFileSync(join(dir, `${tag}.sql`), "utf8");
    const digest = createHash("sha256").update(text).digest("hex");
    return { name: tag, digest, statements: text.split("--> statement-breakpoint") };
  });
}

/** What of these files the database lacks. */
async function pending(db: Db, migrations: Migration[]): Promise<Migration[]> {
  const rows = await db<{ name: string; digest: string }[]>`select name, digest from migrations order by name`;
  const applied = new Map(rows.map(({ name, digest }) => [name, digest]));
  const known = new Set(migrations.map(({ name }) => name));
  const foreign = rows.find(({ name }) => !known.has(name));
  if (foreign !== undefined) {
    throw new SchemaTooNew(
      `the database is newer than this server: it has the migration ${foreign.name}; start the version that made it, or a newer one`,
    );
  }
  return migrations.filter(({ name, digest }) => {
    const before = applied.get(name);
    if (before === undefined || before === digest) return before === undefined;
    throw new StartError(`the migration ${name} is not the one that the database has applied`);
  });
}

/** Applies the next file that the database lacks, in one transaction; answers its name. */
async function applyNext(db: Db, migrations: Migration[]): Promise<string | undefined> {
  return await transaction(db, async (tx) => {
    await tx`select pg_advisory_xact_lock(${lockKey})`;
    await tx`
      create table if not exists migrations (
        name text collate "C" primary key, digest text not null, applied_at timestamptz not null default now()
      )`;
    const [next] = await pending(tx, migrations);
    if (next === undefined) return undefined;
    for (const statement of next.statements) await tx.unsafe(statement);
    await tx`insert into migrations (name, digest) values (${next.name}, ${next.digest})`;
    return next.name;
  });
}

/**
 * Applies the migrations that the database lacks, in order, and answers their names: one transaction a file, so that a
 * failed one leaves those before it and nothing of itself. Any number of servers may do so at once: an advisory lock
 * lets one work while the others wait. May be repeated.
 * @throws SchemaTooNew, and StartError when the database cannot be used
 */
export async function migrate(url: string, { dir = migrationsDir } = {}): Promise<string[]> {
  const migrations = readMigrations(dir);
  const { sql, close } = connectOnce(url, "belfry migrate");
  try {
    await checkServer(sql);
    const names: string[] = [];
    for (;;) {
      const name = await applyNext(sql, migrations);
      if (name === undefined) return names;
      names.push(name);
    }
  } finally {
    await close();
  }
}
