import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { nativeDir } from "../../../src/db/embedded/binaries.ts";
import { startEmbedded } from "../../../src/db/embedded/embedded.ts";
import { chooseAccount } from "../../../src/db/embedded/os-account.ts";
import { alive } from "../../../src/db/embedded/postmaster.ts";
import { useEmbedded } from "../../../src/db/embedded/use-embedded.ts";
import { StartError } from "../../../src/db/start-error.ts";
import { temporaryDir } from "../../support/database.ts";

const lines: string[] = [];
const note = (_values: object, message: string) => void lines.push(message);
const log = { info: note, warn: note, error: note };
const isRoot = process.getuid?.() === 0;
const nobody = { uid: 65534, gid: 65534 };

afterEach(() => {
  lines.length = 0;
});

function freshDir(mode = 0o711): string {
  const dir = temporaryDir();
  chmodSync(dir, mode);
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function start(dataDir: string) {
  const embedded = await startEmbedded({ dataDir, log, durable: false });
  onTestFinished(() => embedded.stop("immediate"));
  return embedded;
}

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** A server process of its own, and the line that it printed. */
async function serverProcess(dataDir: string, ids = {}) {
  const script = join(import.meta.dirname, "../../support/embedded-server.ts");
  const child = spawn(process.execPath, [script, dataDir], { ...ids, cwd: "/", stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(async () => {
    child.stdin.end();
    await exitOf(child);
  });
  let printed = "";
  for await (const chunk of child.stdout) {
    printed += chunk;
    if (printed.includes("\n")) break;
  }
  return {
    child,
    said: JSON.parse(printed) as { url: string; pid: number; error?: { name: string; message: string } },
  };
}

const exitOf = (child: ChildProcess) =>
  child.exitCode ?? child.signalCode ?? new Promise((resolve) => child.once("exit", resolve));

async function until<T>(fn: () => Promise<T>, withinMs: number): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    try {
      return await fn();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(20);
    }
  }
}

describe("data survive", () => {
  test("a stop and a start, at the same address, with nothing but this account able to read the password", async () => {
    const dir = freshDir();
    const first = await startEmbedded({ dataDir: dir, log });
    const [server] = await query(
      first.url,
      `select current_setting('server_version_num')::int as version, current_setting('fsync') as fsync,
         current_setting('listen_addresses') as listens, lower('ÄΣ' collate pg_c_utf8) as folded`,
    );
    expect(server).toMatchObject({ fsync: "on", listens: "127.0.0.1", folded: "äσ" });
    expect(server?.version).toBeGreaterThanOrEqual(170000);
    await query(first.url, "create table kept as select 7 as n");
    const { pid } = first;
    await first.stop();
    expect(alive(pid as number)).toBe(false);
    const second = await start(dir);
    expect(second.url).toBe(first.url);
    expect(await query(second.url, "select n from kept")).toEqual([{ n: 7 }]);
    expect(statSync(join(dir, "database.url")).mode & 0o777).toBe(0o600);
    expect(statSync(join(dir, "postgres")).mode & 0o777).toBe(0o700);
  });

  test("kill -9 of the server: the next one takes over its PostgreSQL, and looks after it", async () => {
    const dir = freshDir();
    const { child, said } = await serverProcess(dir);
    await query(said.url, "create table kept as select 7 as n");
    child.kill("SIGKILL");
    await exitOf(child);
    expect(alive(said.pid)).toBe(true);
    const next = await start(dir);
    expect(next.pid).toBe(said.pid);
    expect(lines.join()).toContain("took over");
    process.kill(said.pid, "SIGKILL");
    expect(await until(() => query(next.url, "select n from kept"), 3000)).toEqual([{ n: 7 }]);
    expect(next.pid).not.toBe(said.pid);
  });

  test("kill -9 of PostgreSQL: it is back by itself, also while a statement of its last life is still running", async () => {
    const dir = freshDir();
    const { url, ...embedded } = await start(dir);
    await query(url, "create table kept as select 7 as n");
    const shell = spawn("sleep", ["60"], { cwd: join(dir, "postgres/data") });
    onTestFinished(() => void shell.kill());
    const busy = query(url, "select count(*) from generate_series(1, 10000000000)").catch(() => "lost");
    await sleep(200);
    const killed = Date.now();
    process.kill(embedded.pid as number, "SIGKILL");
    expect(await until(() => query(url, "select n from kept"), 8000)).toEqual([{ n: 7 }]);
    expect(Date.now() - killed).toBeLessThan(4000);
    expect(await busy).toBe("lost");
    // Somebody who stands in that directory is no part of it.
    expect(alive(shell.pid as number)).toBe(true);
  });

  test("a pid file whose number belongs to another process now", async () => {
    const dir = freshDir();
    const first = await startEmbedded({ dataDir: dir, log, durable: false });
    const pidFile = join(dir, "postgres/data/postmaster.pid");
    const text = readFileSync(pidFile, "utf8");
    await first.stop("immediate");
    const other = spawn("sleep", ["60"], isRoot ? nobody : {});
    onTestFinished(() => void other.kill());
    writeFileSync(pidFile, text.replace(/^\d+/, String(other.pid)));
    if (isRoot) chownSync(pidFile, 65534, 65534);
    const second = await start(dir);
    expect(await query(second.url, "select 1 as n")).toEqual([{ n: 1 }]);
    expect(alive(other.pid as number)).toBe(true);
  });

  test("a first start that was killed halfway", async () => {
    const dir = freshDir();
    mkdirSync(join(dir, "postgres/data.new/base"), { recursive: true });
    writeFileSync(join(dir, "database.url"), "postgres://belfry:old@127.0.0.1:61234/belfry\n");
    const { url } = await start(dir);
    expect(await query(url, "select 1 as n")).toEqual([{ n: 1 }]);
  });
});

describe("one clear line", () => {
  test("tells a second server that the directory is in use, in another process too", async () => {
    const dir = freshDir();
    await start(dir);
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toThrow(
      /another server is using the data directory .*BELFRY_DATA_DIR/,
    );
    const { said, child } = await serverProcess(dir);
    expect(said.error?.name).toBe("StartError");
    expect(said.error?.message).toContain("another server is using the data directory");
    expect(await exitOf(child)).toBe(0);
  });

  test("names a data directory that cannot be written", async () => {
    const dir = freshDir();
    writeFileSync(join(dir, "file"), "");
    await expect(startEmbedded({ dataDir: join(dir, "file/data"), log })).rejects.toThrow(
      /cannot write to the data directory .*ENOTDIR.*BELFRY_DATA_DIR/,
    );
  });

  test("names files of another PostgreSQL version, and a password that is missing", async () => {
    const dir = freshDir();
    await (await startEmbedded({ dataDir: dir, log, durable: false })).stop();
    writeFileSync(join(dir, "postgres/data/PG_VERSION"), "12\n");
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toThrow(/made by PostgreSQL 12, this is 18/);
    rmSync(join(dir, "database.url"));
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toThrow(/database.url.* is missing/);
  });

  test("repeats PostgreSQL's own reason when it does not start, and frees the directory", async () => {
    const dir = freshDir();
    await (await startEmbedded({ dataDir: dir, log, durable: false })).stop();
    const control = join(dir, "postgres/data/global/pg_control");
    const bytes = readFileSync(control);
    rmSync(control);
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toBeInstanceOf(StartError);
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toThrow(/did not start: .*(could not|pg_control)/i);
    writeFileSync(control, bytes, { mode: 0o600 });
    if (isRoot) chownSync(control, 65534, 65534);
    expect(await query((await start(dir)).url, "select 1 as n")).toEqual([{ n: 1 }]);
  });
});

describe.runIf(isRoot)("as root", () => {
  test("PostgreSQL runs as an account without rights", async () => {
    const dir = freshDir();
    const { pid } = await start(dir);
    expect(statSync(`/proc/${pid}`).uid).toBe(65534);
  });

  test("below a directory that nobody else may enter it runs in a user namespace, and its data move along", async () => {
    const outer = freshDir();
    const dir = join(outer, "data");
    const first = await startEmbedded({ dataDir: dir, log, durable: false });
    await query(first.url, "create table kept as select 7 as n");
    await first.stop();
    chmodSync(outer, 0o700);
    const second = await start(dir);
    expect(await query(second.url, "select n from kept")).toEqual([{ n: 7 }]);
    expect(readFileSync(`/proc/${second.pid}/uid_map`, "utf8").trim()).toMatch(/^65534\s+0\s+1$/);
  });

  test("without namespaces, the binaries of a closed checkout are copied to the data, or the cure is named", () => {
    const closed = freshDir(0o700);
    const checkout = join(closed, "native");
    const inner = join(closed, "postgres");
    mkdirSync(inner);
    expect(chooseAccount(nativeDir(), inner).prefix[0]).toBe("unshare");
    const path = process.env.PATH;
    onTestFinished(() => {
      process.env.PATH = path;
    });
    cpSync(nativeDir(), checkout, { recursive: true, verbatimSymlinks: true });
    process.env.PATH = "/nowhere";
    const open = join(freshDir(), "postgres");
    mkdirSync(open);
    const copy = chooseAccount(checkout, open);
    expect(copy).toMatchObject({ native: join(open, "native"), ids: nobody });
    expect(existsSync(join(open, "native/bin/postgres"))).toBe(true);
    expect(() => chooseAccount(checkout, inner)).toThrow(/no other account may enter .*BELFRY_DATA_DIR/);
  });

  test("an account without rights can do it by itself, and is told when the directory is not its own", async () => {
    const dir = freshDir();
    chownSync(dir, 65534, 65534);
    const { said } = await serverProcess(dir, nobody);
    expect(await query(said.url, "select 1 as n")).toEqual([{ n: 1 }]);
    const { said: refused } = await serverProcess(join(freshDir(), "data"), nobody);
    expect(refused.error?.message).toMatch(/cannot write to the data directory .*EACCES/);
  });
});

test("a command works on the database of the running server, and starts it when there is none", async () => {
  const dir = freshDir();
  const name = (url: string) => query(url, "select pg_postmaster_start_time()::text as since");
  const alone = await useEmbedded({ dataDir: dir, log, durable: false }, name);
  const server = await start(dir);
  const beside = await useEmbedded({ dataDir: dir, log, durable: false }, name);
  expect(beside).toEqual(await name(server.url));
  expect(beside).not.toEqual(alone);
});
