import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { connectOnce } from "../../src/db/connect.ts";
import { checkMigrated, migrate, migrationsDir, outsideMark, SchemaTooNew } from "../../src/db/migrate.ts";
import { StartError } from "../../src/db/start-error.ts";
import { version } from "../../src/version.ts";
import { emptyDatabase, testDatabase } from "../support/database.ts";
import { printSchema } from "../support/schema.ts";

const { sql } = await testDatabase();
const root = join(import.meta.dirname, "../..");
const journal = JSON.parse(readFileSync(join(migrationsDir, "meta/_journal.json"), "utf8")) as {
  entries: { tag: string; when: number }[];
};
const tags = journal.entries.map(({ tag }) => tag);

/** The migrations in a directory of their own, to change. */
function copied(): string {
  const dir = mkdtempSync(join(tmpdir(), "belfry-migrations-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  cpSync(migrationsDir, dir, { recursive: true });
  return dir;
}

function append(dir: string, tag: string, text: string) {
  writeFileSync(join(dir, `${tag}.sql`), text);
  writeJournal(dir, [...journal.entries, { tag, when: Date.now() }]);
}

function writeJournal(dir: string, entries: readonly { tag: string; when: number }[]) {
  writeFileSync(join(dir, "meta/_journal.json"), JSON.stringify({ ...journal, entries }));
}

test("the migrations' stamps strictly rise, their numbers have no gap, and every file is in the journal", () => {
  const stamps = journal.entries.map(({ when }) => when);
  expect(stamps).toEqual([...new Set(stamps)].sort((a, b) => a - b));
  expect(tags.map((tag) => Number(tag.slice(0, 4)))).toEqual(tags.map((_, i) => i));
  const files = readdirSync(migrationsDir).filter((name) => name.endsWith(".sql"));
  expect(files.map((name) => name.replace(".sql", "")).sort()).toEqual(tags);
});

test("a file that is released never changes, and none comes before it", () => {
  const released = readFileSync(join(migrationsDir, "meta/_released.sha256"), "utf8").trimEnd().split("\n");
  const found = tags.map((tag) => {
    const text = readFileSync(join(migrationsDir, `${tag}.sql`));
    return `${createHash("sha256").update(text).digest("hex")}  ${tag}.sql`;
  });
  expect(found.slice(0, released.length)).toEqual(released);
});

test("every file names the oldest server that may start on it, which is none to come", () => {
  for (const tag of tags) {
    const [, oldest] =
      /^-- oldest server: (\d+\.\d+\.\d+)$/m.exec(readFileSync(join(migrationsDir, `${tag}.sql`), "utf8")) ?? [];
    expect(oldest, tag).toBeDefined();
    const numbers = (text = "") =>
      text
        .split(".")
        .map((part) => part.padStart(6, "0"))
        .join(".");
    expect(numbers(oldest) <= numbers(version), `${tag} names ${oldest}`).toBe(true);
  }
});

test("every file is applied, in order; a second time applies nothing", async () => {
  const { url } = await emptyDatabase();
  expect(await migrate(url)).toEqual(tags);
  expect(await migrate(url)).toEqual([]);
});

test("several servers may migrate at once: each file is applied by one of them", async () => {
  const { url } = await emptyDatabase();
  const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(url)));
  expect(applied.flat().sort()).toEqual(tags);
});

test("a file that fails leaves those before it, and nothing of itself; mended it is applied", async () => {
  const { url, query } = await emptyDatabase({ migrated: true });
  const dir = copied();
  append(dir, "9999_halfway", "create table halfway (id int);\n--> statement-breakpoint\nselect 1 / 0;");
  await expect(migrate(url, { dir })).rejects.toThrow("division by zero");
  expect(await query("select name from migrations order by name")).toEqual(tags.map((name) => ({ name })));
  expect(await query("select to_regclass('halfway') as found")).toEqual([{ found: null }]);
  append(dir, "9999_halfway", "create table halfway (id int);");
  expect(await migrate(url, { dir })).toEqual(["9999_halfway"]);
});

describe("on a database in use", () => {
  /** Holds a lock on the entities until it is told to let go. */
  async function inUse(url: string) {
    const { sql, close } = connectOnce(url, "holder");
    const held = Promise.withResolvers<void>();
    const free = Promise.withResolvers<void>();
    const transaction = sql.begin(async (tx) => {
      await tx`select 1 as one from entities`;
      held.resolve();
      await free.promise;
    });
    await held.promise;
    const letGo = async () => {
      free.resolve();
      await transaction;
      await close();
    };
    return letGo;
  }

  test("a migration that needs a lock is tried again until it gets it", async () => {
    const { url } = await emptyDatabase({ migrated: true });
    const letGo = await inUse(url);
    const dir = copied();
    append(dir, "9999_column", "alter table entities add column later int;");
    const said: string[] = [];
    const log = { info: (text: string) => void said.push(text) };
    const migrated = migrate(url, { dir, lockTimeoutMs: 50, log });
    await expect.poll(() => said.length).toBeGreaterThan(1);
    await letGo();
    expect(await migrated).toEqual(["9999_column"]);
  });

  test("one that does not get it in time says so in one line, and leaves nothing of itself", async () => {
    const { url, query } = await emptyDatabase({ migrated: true });
    const letGo = await inUse(url);
    const dir = copied();
    append(
      dir,
      "9999_column",
      "create table halfway (id int);\n--> statement-breakpoint\nalter table entities add column later int;",
    );
    const failure = migrate(url, { dir, lockTimeoutMs: 20, lockedMsMax: 100 });
    await expect(failure).rejects.toBeInstanceOf(StartError);
    await expect(failure).rejects.toThrow(/^the migration 9999_column needs a lock that other transactions [^\n]*$/);
    expect(await query("select to_regclass('halfway') as found")).toEqual([{ found: null }]);
    await letGo();
  });

  const wide = `${outsideMark}\n--> statement-breakpoint\ncreate index concurrently entities_wide on entities (name);`;
  const validity = "select indisvalid as valid from pg_index where indexrelid = to_regclass('entities_wide')";

  test("a large index is made outside of a transaction, once, by several servers that start at once", async () => {
    const { url, query } = await emptyDatabase({ migrated: true });
    const dir = copied();
    append(dir, "9999_wide", wide);
    const applied = await Promise.all(Array.from({ length: 4 }, () => migrate(url, { dir })));
    expect(applied.flat().filter((tag) => tag === "9999_wide")).toHaveLength(1);
    expect(await query(validity)).toEqual([{ valid: true }]);
    expect(await migrate(url, { dir })).toEqual([]);
  });

  test("one that was cut off is dropped and made again by the next start", async () => {
    const { url, query } = await emptyDatabase({ migrated: true });
    const { sql: writer, close } = connectOnce(url, "writer");
    onTestFinished(close);
    const written = Promise.withResolvers<void>();
    const free = Promise.withResolvers<void>();
    const writing = writer.begin(async (tx) => {
      await tx`insert into tenants (id, name, created_ms) values (gen_random_uuid(), 'north', 0)`;
      await tx`insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
        select id, 'x', 'x', '{}', '{}', 0, 0, 0 from tenants`;
      written.resolve();
      await free.promise;
    });
    await written.promise;
    const dir = copied();
    append(dir, "9999_wide", wide);
    const cut = migrate(url, { dir });
    const failed = expect(cut).rejects.toThrow();
    // It waits for the writer, and its connection breaks meanwhile.
    await expect
      .poll(() =>
        query(
          "select pg_terminate_backend(pid) from pg_stat_activity where query like '%concurrently%' and wait_event_type = 'Lock'",
        ),
      )
      .toHaveLength(1);
    await failed;
    free.resolve();
    await writing;
    expect(await query(validity)).toEqual([{ valid: false }]);
    expect(await migrate(url, { dir })).toEqual(["9999_wide"]);
    expect(await query(validity)).toEqual([{ valid: true }]);
  });

  test("later files make an index on a table that exists only concurrently", () => {
    const texts = tags.map((tag) => ({ tag, text: readFileSync(join(migrationsDir, `${tag}.sql`), "utf8") }));
    const faults = texts.flatMap(({ tag, text }) =>
      [...text.matchAll(/create\s+(?:unique\s+)?index\s+(concurrently\s+)?"?\w+"?\s+on\s+"?(\w+)"?/gi)]
        .filter(
          ([, concurrently, table]) =>
            !concurrently && !new RegExp(`create table (?:if not exists )?"?${table}"?[ (]`, "i").test(text),
        )
        .map(([found]) => `${tag}: ${found}`),
    );
    expect(faults).toEqual([]);
  });
});

test("commands that do not migrate say what the database lacks", async () => {
  const { url } = await emptyDatabase();
  await expect(checkMigrated(url)).rejects.toThrow(
    /^the database lacks the migration 0000_extensions; [^\n]*migrate[^\n]*$/,
  );
  const { url: migrated } = await emptyDatabase({ migrated: true });
  await checkMigrated(migrated);
  const dir = copied();
  append(dir, "9999_later", "select 1;");
  await expect(checkMigrated(migrated, { dir })).rejects.toThrow(/lacks the migration 9999_later/);
  await migrate(migrated, { dir });
  await expect(checkMigrated(migrated)).rejects.toThrow(SchemaTooNew);
});

test("a server goes on with a newer database whose migrations name it, or an older one, as the oldest that may", async () => {
  const { url } = await emptyDatabase({ migrated: true });
  const dir = copied();
  append(dir, "9999_later", "-- oldest server: 1.4.2\nselect 1;");
  await migrate(url, { dir, version: "1.5.0" });
  for (const version of ["1.4.2", "1.4.10", "1.10.0", "2.0.0", "1.5.0-rc.1"]) {
    expect(await migrate(url, { version })).toEqual([]);
    await checkMigrated(url, { version });
  }
  for (const version of ["1.4.1", "1.3.9", "0.9.9"]) {
    const message = `the database is newer than this server, Belfry ${version}: its migration 9999_later needs Belfry 1.4.2 or a newer one; start that`;
    await expect(migrate(url, { version })).rejects.toThrow(message);
    await expect(checkMigrated(url, { version })).rejects.toThrow(SchemaTooNew);
  }
});

test("a database of a version before the first release is refused with the cure", async () => {
  const { url, query } = await emptyDatabase();
  await query("create table migrations (name text primary key, digest text not null)");
  const refused = /^the database was made by a version before 0\.1\.0, [^\n]*: start on an empty one [^\n]*$/;
  await expect(migrate(url)).rejects.toThrow(refused);
  await expect(checkMigrated(url)).rejects.toThrow(refused);
});

describe("what only 0.3 can take over is refused with the cure", () => {
  const before03 = tags.indexOf("0021_grouping");
  const before04 = tags.indexOf("0026_closed-by");
  const refused = /^the database is of a version before 0\.3\.0, [^\n]*: start Belfry 0\.3\.1 on it, [^\n]*$/;

  test("a database on which a server before 0.3.0 has served, until one of 0.3 has", async () => {
    const { url, query } = await emptyDatabase();
    await migrate(url, { count: before03, unused: true });
    await query("insert into leases (name, holder, until_ms) values ('jobs.report', 'somebody', 0)");
    await expect(migrate(url)).rejects.toThrow(refused);
    await migrate(url, { count: before03 + 1, unused: true });
    expect(await migrate(url)).toEqual(tags.slice(before03 + 1));
  });

  test("changes of events that 0.2 has left, until there are none", async () => {
    const { url, query } = await emptyDatabase();
    await migrate(url, { count: before04 });
    await query(`insert into unmatched_changes (tenant_id, position, id, created_ms, count, done, bytes, changes)
      values (gen_random_uuid(), 1, gen_random_uuid(), 1, 1, 0, 1, '{}')`);
    await expect(migrate(url)).rejects.toThrow(/^changes of events are left [^\n]*Belfry 0\.3\.1[^\n]*$/);
    await query("delete from unmatched_changes");
    expect(await migrate(url)).toEqual(tags.slice(before04));
  });

  test("a database that no server has used is brought up to date from any version", async () => {
    const { url } = await emptyDatabase();
    await migrate(url, { count: before03 });
    expect(await migrate(url)).toEqual(tags.slice(before03));
  });
});

test("a newer database is refused, in one line that names the migration; so is a changed one", async () => {
  const { url } = await emptyDatabase({ migrated: true });
  const dir = copied();
  append(dir, "9999_later", "select 1;");
  await migrate(url, { dir });
  await expect(migrate(url)).rejects.toThrow(SchemaTooNew);
  await expect(migrate(url)).rejects.toThrow(
    /^the database is newer than this server, .*9999_later needs the version that made it[^\n]*$/,
  );
  writeFileSync(join(dir, "9999_later.sql"), "select 2;");
  await expect(migrate(url, { dir })).rejects.toThrow(
    /^the migration 9999_later is not the one .* on an empty one [^\n]*$/,
  );
});

test("a database that cannot be used is reported in one line", async () => {
  for (const host of ["127.0.0.1:1", "localhost:1", "[::1]:1"]) {
    const failure = migrate(`postgres://somebody:secret@${host}/belfry`);
    await expect(failure).rejects.toBeInstanceOf(StartError);
    await expect(failure).rejects.toThrow(/^cannot use the database \([^\n]*ECONNREFUSED[^\n]*DATABASE_URL[^\n]*$/);
    await expect(failure).rejects.not.toThrow("secret");
  }
  const mute = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void mute.close());
  const { port } = mute.address() as { port: number };
  await expect(migrate(`postgres://a:b@127.0.0.1:${port}/c`)).rejects.toThrow(/closed the connection|ECONNRESET/);
  const { url } = await emptyDatabase();
  const wrong = Object.assign(new URL(url), { password: "wrong" }).href;
  await expect(migrate(wrong)).rejects.toThrow(/password authentication failed/);
});

test("drizzle-kit finds nothing to generate from the tables", () => {
  const out = copied();
  const config = join(out, "drizzle.config.json");
  const schema = join(root, "src/**/tables.ts");
  writeFileSync(
    config,
    JSON.stringify({ dialect: "postgresql", schema, out: relative(root, out), casing: "snake_case" }),
  );
  const before = readdirSync(out);
  const kit = join(root, "node_modules/drizzle-kit/bin.cjs");
  const said = execFileSync(process.execPath, [kit, "generate", "--config", config, "--name", "missing"], {
    cwd: root,
    encoding: "utf8",
  });
  expect(said).toContain("No schema changes");
  expect(readdirSync(out)).toEqual(before);
});

test("schema.sql beside this test is what the migrations make", async () => {
  await expect(await printSchema(sql)).toMatchFileSnapshot("schema.sql");
});
