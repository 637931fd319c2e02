import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { checkServer, clientOptions, type Db, type Sql } from "./connect.ts";
import { guarded } from "./guarded.ts";
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

async function applyPending(db: Db, migrations: Migration[]) {
  await db`
    create table if not exists migrations (
      name text collate "C" primary key, digest text not null, applied_at timestamptz not null default now()
    )`;
  const rows = await db<{ name: string; digest: string }[]>`select name, digest from migrations order by name`;
  const applied = new Map(rows.map(({ name, digest }) => [name, digest]));
  const known = new Set(migrations.map(({ name }) => name));
  const foreign = rows.find(({ name }) => !known.has(name));
  if (foreign !== undefined) {
    throw new SchemaTooNew(
      `the database is newer than this server: it has the migration ${foreign.name}; start the version that made it, or a newer one`,
    );
  }
  const names: string[] = [];
  for (const { name, digest, statements } of migrations) {
    const before = applied.get(name);
    if (before === digest) continue;
    if (before !== undefined)
      throw new StartError(`the migration ${name} is not the one that the database has applied`);
    // One transaction a file: a failed one leaves those before it, and nothing of itself.
    await transaction(db, async (tx) => {
      for (const statement of statements) await tx.unsafe(statement);
      await tx`insert into migrations (name, digest) values (${name}, ${digest})`;
    });
    names.push(name);
  }
  return names;
}

/**
 * Applies the migrations that the database lacks, in order, and answers their names. Any number of servers may do so at
 * once: an advisory lock lets one work while the others wait. May be repeated.
 * @throws SchemaTooNew, and StartError when the database cannot be used
 */
export async function migrate(url: string, { dir = migrationsDir } = {}): Promise<string[]> {
  const migrations = readMigrations(dir);
  const connection = { application_name: "belfry migrate" };
  const client = postgres(url, { ...clientOptions, max: 1, max_lifetime: null, connection } as never);
  const sql = guarded(client as unknown as Sql);
  try {
    await checkServer(sql);
    await sql`select pg_advisory_lock(${lockKey})`;
    return await applyPending(sql, migrations);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
