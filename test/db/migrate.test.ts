import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { migrate, migrationsDir, SchemaTooNew } from "../../src/db/migrate.ts";
import { StartError } from "../../src/db/start-error.ts";
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
  const entries = [...journal.entries, { tag, when: Date.now() }];
  writeFileSync(join(dir, "meta/_journal.json"), JSON.stringify({ ...journal, entries }));
}

test("the migrations' stamps strictly rise, their numbers have no gap, and every file is in the journal", () => {
  const stamps = journal.entries.map(({ when }) => when);
  expect(stamps).toEqual([...new Set(stamps)].sort((a, b) => a - b));
  expect(tags.map((tag) => Number(tag.slice(0, 4)))).toEqual(tags.map((_, i) => i));
  const files = readdirSync(migrationsDir).filter((name) => name.endsWith(".sql"));
  expect(files.map((name) => name.replace(".sql", "")).sort()).toEqual(tags);
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
  const { url, query } = await emptyDatabase();
  const dir = copied();
  append(dir, "9999_halfway", "create table halfway (id int);\n--> statement-breakpoint\nselect 1 / 0;");
  await expect(migrate(url, { dir })).rejects.toThrow("division by zero");
  expect(await query("select name from migrations order by name")).toEqual(tags.map((name) => ({ name })));
  expect(await query("select to_regclass('halfway') as found")).toEqual([{ found: null }]);
  append(dir, "9999_halfway", "create table halfway (id int);");
  expect(await migrate(url, { dir })).toEqual(["9999_halfway"]);
});

test("a newer database is refused, in one line that names the migration; so is a changed one", async () => {
  const { url } = await emptyDatabase();
  const dir = copied();
  append(dir, "9999_later", "select 1;");
  await migrate(url, { dir });
  await expect(migrate(url)).rejects.toThrow(SchemaTooNew);
  await expect(migrate(url)).rejects.toThrow(/^the database is newer than this server: .*9999_later[^\n]*$/);
  writeFileSync(join(dir, "9999_later.sql"), "select 2;");
  await expect(migrate(url, { dir })).rejects.toThrow(/^the migration 9999_later is not the one/);
});

test("a database that cannot be used is told in one line", async () => {
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
  const schema = join(root, "src/*/tables.ts");
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
