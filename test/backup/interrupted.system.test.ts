import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { exportTo } from "../../src/backup/export.ts";
import { importFrom } from "../../src/backup/import.ts";
import { progressLine } from "../../src/cli/transfer.ts";
import { connectOnce, type Sql } from "../../src/db/connect.ts";
import { sessionName } from "../../src/db/session-name.ts";
import { version } from "../../src/version.ts";
import { emptyDatabase, temporaryDir } from "../support/database.ts";
import { program } from "../support/program.ts";

const dir = temporaryDir();
const main = await program();

/** A database with some rows, and a connection to it. */
async function filled(tenants = 1000) {
  const { url, query } = await emptyDatabase({ migrated: true });
  await query(`insert into tenants select gen_random_uuid(), 'tenant ' || n, 0 from generate_series(1, ${tenants}) n`);
  const { sql, close } = connectOnce(url, "belfry test");
  onTestFinished(close);
  return { url, sql };
}

function command(url: string, args: string[]) {
  const { PATH = "" } = process.env;
  const child = spawn(process.execPath, [main, ...args], { env: { PATH, DATABASE_URL: url } });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stderr.on("data", (text) => {
    said += text;
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.on("close", (code, signal) => resolve(code ?? signal)),
  );
  return { child: child as ChildProcess, ended, said: () => said };
}

/** What a copy of that name does in the database; undefined while there is no such connection. */
async function backend(sql: Sql, name: string) {
  const [row] = await sql<{ pid: number; waits: string | null }[]>`
    select pid, wait_event_type as waits from pg_stat_activity
    where datname = current_database() and application_name = ${name}`;
  return row;
}

interface Held {
  child: ChildProcess;
  sql: Sql;
}

/** Runs a command that waits for a lock in its middle, and does something to it then: it ends while the lock is held, unless that says "go on". */
async function inTheMiddle(what: "export" | "import", file: string, act: (held: Held) => Promise<"go on" | undefined>) {
  const { url, sql } = what === "export" ? await filled() : await filled(0);
  let run: ReturnType<typeof command> | undefined;
  await sql.begin(async (tx) => {
    await tx.unsafe('lock table "tenants" in access exclusive mode');
    run = command(url, [what, file]);
    const { sql: other, close } = connectOnce(url, "belfry look");
    onTestFinished(close);
    await expect.poll(() => backend(other, sessionName(what))).toMatchObject({ waits: "Lock" });
    if ((await act({ child: run.child, sql: other })) === "go on") return;
    await run.ended;
    await expect.poll(() => backend(other, sessionName(what))).toBeUndefined();
  });
  const code = await run?.ended;
  return { code, said: run?.said(), url, sql };
}

function stopped(child: ChildProcess, signal: NodeJS.Signals): undefined {
  child.kill(signal);
}

const parts = (file: string) => readdirSync(dir).filter((name) => join(dir, name).startsWith(`${file}.`));

describe("an export that is stopped in its middle leaves no file and no transaction", () => {
  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("by %s", async (signal, exitCode) => {
    const file = join(dir, signal);
    const { code, said } = await inTheMiddle("export", file, async ({ child }) => stopped(child, signal));
    expect({ code, said }).toEqual({ code: exitCode, said: `belfry: stopped by ${signal} before it was done\n` });
    expect([existsSync(file), parts(file)]).toEqual([false, []]);
  });

  test("by the end of its connection", async () => {
    const file = join(dir, "terminated");
    const { code, said } = await inTheMiddle("export", file, async ({ sql }) => {
      const { pid = 0 } = (await backend(sql, sessionName("export"))) ?? {};
      await sql`select pg_terminate_backend(${pid}::int4)`;
      return undefined;
    });
    expect(code).toBe(1);
    expect(said).toMatch(/^belfry: the export failed \([^\n]+\); no file was written\n$/);
    expect([existsSync(file), parts(file)]).toEqual([false, []]);
  });

  test("by kill -9, but for a part that keeps no later export from its name", async () => {
    const file = join(dir, "killed");
    const { url } = await inTheMiddle("export", file, async ({ child }) => stopped(child, "SIGKILL"));
    expect(parts(file)).toHaveLength(1);
    await exportTo(url, file, version);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});

test("a file that gets the name of an export while it runs is not written over", async () => {
  const file = join(dir, "taken");
  const { code, said } = await inTheMiddle("export", file, async () => {
    writeFileSync(file, "mine");
    return "go on";
  });
  expect({ code, said }).toEqual({ code: 1, said: `belfry: ${file} is there; an export does not write over it\n` });
  expect([readFileSync(file, "utf8"), parts(file)]).toEqual(["mine", []]);
});

test("an import that is stopped in its middle leaves no row and no transaction, and may be repeated", async () => {
  const { url: source } = await filled();
  const file = join(dir, "to-import");
  await exportTo(source, file, version);
  const { code, said, sql, url } = await inTheMiddle("import", file, async ({ child }) => stopped(child, "SIGHUP"));
  expect({ code, said }).toEqual({ code: 129, said: "belfry: stopped by SIGHUP before it was done\n" });
  expect(await sql`select count(*)::int4 as count from tenants`).toEqual([{ count: 0 }]);
  await importFrom(url, file, version, async () => {});
  expect(await sql`select count(*)::int4 as count from tenants`).toEqual([{ count: 1000 }]);
});

test("on a terminal one line says how far a copy is, and is gone at its end; elsewhere there is none", async () => {
  for (const isTTY of [true, false]) {
    const written: string[] = [];
    const line = progressLine({ isTTY, write: (text) => written.push(text) });
    for (let i = 0; i < 100; i += 1) line.note({ rows: 1234, table: "feed", number: 14, of: 47 });
    line.end();
    expect(written).toEqual(isTTY ? ["\r\x1b[K1,234 rows; table 14 of 47, feed", "\r\x1b[K"] : []);
  }
});

test("a command whose output no one reads ends with one line", async () => {
  const { url } = await filled(20_000);
  const { child, ended, said } = command(url, ["tenants", "list"]);
  child.stdout?.destroy();
  expect(await ended).toBe(1);
  expect(said()).toBe("belfry: cannot write to standard output (write EPIPE)\n");
});

test("ten thousand tenants are listed, each once", async () => {
  const { url } = await filled(10_000);
  const { child, ended } = command(url, ["tenants", "list"]);
  let listed = "";
  child.stdout?.on("data", (text) => {
    listed += text;
  });
  expect(await ended).toBe(0);
  expect(new Set(listed.match(/tenant \d+/g)).size).toBe(10_000);
});
