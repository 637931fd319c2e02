import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { addressOptions, destinationOf } from "../../src/db/connect.ts";
import { StartError } from "../../src/db/start-error.ts";
import { nativeDir } from "../../src/embedded/binaries.ts";
import { startEmbedded, useEmbedded } from "../../src/embedded/embedded.ts";
import { chooseAccount } from "../../src/embedded/os-account.ts";
import { alive } from "../../src/embedded/postmaster.ts";
import { copyCluster } from "../support/cluster.ts";
import { temporaryDir } from "../support/database.ts";

// Each makes clusters, which takes a busy machine long.
vi.setConfig({ testTimeout: 120_000 });

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

/** One that PostgreSQL has been in before. */
function usedDir(): string {
  const dir = freshDir();
  copyCluster(dir);
  return dir;
}

async function start(dataDir: string) {
  const embedded = await startEmbedded({ dataDir, log, durable: false });
  onTestFinished(() => embedded.stop("immediate"));
  return embedded;
}

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { ...addressOptions(url), max: 1, onnotice: () => undefined } as never);
  try {
    return await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** A server process of its own, and the line that it printed. */
async function serverProcess(dataDir: string, ids = {}) {
  const script = join(import.meta.dirname, "../support/embedded-server.ts");
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
         current_setting('listen_addresses') as listens, (select rolsuper from pg_roles where rolname = current_user) as mighty, lower('ÄΣ' collate pg_c_utf8) as folded`,
    );
    expect(server).toMatchObject({ fsync: "on", listens: "", mighty: false, folded: "äσ" });
    expect(server?.version).toBeGreaterThanOrEqual(170000);
    await query(first.url, "create table kept as select 7 as n");
    const { pid } = first;
    await first.stop();
    expect(alive(pid as number)).toBe(false);
    const second = await start(dir);
    expect(second.url).toBe(first.url);
    expect(await query(second.url, "select n from kept")).toEqual([{ n: 7 }]);
    for (const name of ["database.url", "database-admin.url", "lock"])
      expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
    expect(statSync(join(dir, "socket")).mode & 0o777).toBe(0o700);
    expect(statSync(join(dir, "postgres")).mode & 0o777).toBe(0o700);
  });

  test("kill -9 of the server: the next one takes over its PostgreSQL, and looks after it", async () => {
    const dir = usedDir();
    const { child, said } = await serverProcess(dir);
    await query(said.url, "create table kept as select 7 as n");
    child.kill("SIGKILL");
    await exitOf(child);
    expect(alive(said.pid)).toBe(true);
    const next = await start(dir);
    expect(next.pid).toBe(said.pid);
    expect(lines.join()).toContain("took over");
    process.kill(said.pid, "SIGKILL");
    expect(await until(() => query(next.url, "select n from kept"), 60_000)).toEqual([{ n: 7 }]);
    expect(next.pid).not.toBe(said.pid);
  });

  test("kill -9 of PostgreSQL: it is back by itself, also while a statement of its last life is still running", async () => {
    const dir = usedDir();
    const { url, ...embedded } = await start(dir);
    await query(url, "create table kept as select 7 as n");
    const shell = spawn("sleep", ["60"], { cwd: join(dir, "postgres/data") });
    onTestFinished(() => void shell.kill());
    const busy = query(url, "select count(*) from generate_series(1, 10000000000)").catch(() => "lost");
    await sleep(200);
    process.kill(embedded.pid as number, "SIGKILL");
    expect(await until(() => query(url, "select n from kept"), 60_000)).toEqual([{ n: 7 }]);
    expect(await busy).toBe("lost");
    // A process whose working directory it is is no part of it.
    expect(alive(shell.pid as number)).toBe(true);
  });

  test("a pid file whose number belongs to another process now", async () => {
    const dir = usedDir();
    const first = await startEmbedded({ dataDir: dir, log, durable: false });
    const pidFile = join(dir, "postgres/data/postmaster.pid");
    const text = readFileSync(pidFile, "utf8");
    await first.stop("immediate");
    const other = spawn("sleep", ["60"], isRoot ? nobody : {});
    onTestFinished(() => void other.kill());
    for (const path of [pidFile, join(dir, "socket/.s.PGSQL.5432.lock")]) {
      writeFileSync(path, text.replace(/^\d+/, String(other.pid)), { mode: 0o600 });
      if (isRoot) chownSync(path, 65534, 65534);
    }
    const second = await start(dir);
    expect(await query(second.url, "select 1 as n")).toEqual([{ n: 1 }]);
    expect(alive(other.pid as number)).toBe(true);
  });

  test.each([
    ["is empty", ""],
    ["holds zeros", "\0".repeat(90)],
    ["holds no number", "garbage\n/nowhere\n"],
    ["holds a number that no process can have", "99999999999\n"],
  ])("a power cut after which the pid file %s", async (_, text) => {
    const dir = usedDir();
    const pidFile = join(dir, "postgres/data/postmaster.pid");
    const first = await startEmbedded({ dataDir: dir, log, durable: false });
    await first.stop("immediate");
    // That of the socket was written at the same time.
    for (const path of [pidFile, join(dir, "socket/.s.PGSQL.5432.lock")]) {
      writeFileSync(path, text, { mode: 0o600 });
      if (isRoot) chownSync(path, 65534, 65534);
    }
    expect(await query((await start(dir)).url, "select 1 as n")).toEqual([{ n: 1 }]);
  });

  test.runIf(process.platform === "linux")("a pid file that names nobody beside a PostgreSQL left over", async () => {
    const dir = usedDir();
    const { child, said } = await serverProcess(dir);
    await query(said.url, "create table kept as select 7 as n");
    child.kill("SIGKILL");
    await exitOf(child);
    writeFileSync(join(dir, "postgres/data/postmaster.pid"), "");
    const next = await start(dir);
    expect(next.pid).not.toBe(said.pid);
    expect(await query(next.url, "select n from kept")).toEqual([{ n: 7 }]);
  });

  test("with a server whose own role has no rights but on its database", async () => {
    const { url } = await start(usedDir());
    const [role] = await query(url, "select rolsuper from pg_roles where rolname = current_user");
    expect(role).toEqual({ rolsuper: false });
    await expect(query(url, "copy (select 1) to program 'true'")).rejects.toThrow(/permission denied/);
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
    const dir = usedDir();
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
    const dir = usedDir();
    writeFileSync(join(dir, "postgres/data/PG_VERSION"), "12\n");
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toThrow(/made by PostgreSQL 12, this is 18/);
    rmSync(join(dir, "database.url"));
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toThrow(/database.url.* is missing/);
    rmSync(join(dir, "database-admin.url"));
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toThrow(/database.*url.* is missing/);
  });

  test("names a file of its password that is damaged, as by a power cut", async () => {
    const dir = usedDir();
    writeFileSync(join(dir, "database.url"), "");
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toThrow(
      /^\S+\/database.url, which holds the password .*, is missing or damaged; put it back$/,
    );
  });

  test("names a directory for temporary files that is absent, where the socket needs one", async () => {
    const { TMPDIR } = process.env;
    onTestFinished(() => {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    });
    const long = join(freshDir(), "a".repeat(100));
    process.env.TMPDIR = "/nowhere/at/all";
    const refused = startEmbedded({ dataDir: long, log });
    await expect(refused).rejects.toBeInstanceOf(StartError);
    await expect(refused).rejects.toThrow(/^cannot make .* in \/nowhere\/at\/all \(ENOENT\): set TMPDIR .*$/);
  });

  test("repeats PostgreSQL's own reason when it does not start, and frees the directory", async () => {
    const dir = usedDir();
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

  test("follows no link that its account plants, and writes nothing in its directory", async () => {
    const dir = usedDir();
    const folder = join(dir, "postgres");
    const victim = join(dir, "victim");
    const targets = ["log", "log.old", ".writable", "native", "native.new", "data.password", "data.new"];
    targets.push("data/postgresql.conf", "data/pg_hba.conf", "data/.writable");
    writeFileSync(victim, "root's own", { mode: 0o600 });
    for (const name of targets) {
      rmSync(join(folder, name), { recursive: true, force: true });
      symlinkSync(victim, join(folder, name));
      lchownSync(join(folder, name), 65534, 65534);
    }
    const again = await start(dir);
    expect(await query(again.url, "select 1 as n")).toEqual([{ n: 1 }]);
    expect(readFileSync(victim, "utf8")).toBe("root's own");
    expect(statSync(victim)).toMatchObject({ uid: 0, mode: 0o100600 });
    const found = readdirSync(folder, { recursive: true, encoding: "utf8" });
    expect(found.filter((name) => lstatSync(join(folder, name)).uid !== 65534)).toEqual([]);
  });

  test("no third account reaches the database", async () => {
    const { url } = await start(usedDir());
    const script =
      "require('net').connect(process.argv[1]).on('connect',()=>process.exit(0)).on('error',(e)=>{console.log(e.code);process.exit(1)})";
    const { path } = destinationOf(url) as { path: string };
    const stranger = { uid: 12_345, gid: 12_345, cwd: "/", encoding: "utf8" } as const;
    const node = spawnSync("/bin/sh", ["-c", `test -e ${path} || echo hidden`], stranger);
    expect(node.stdout.trim()).toBe("hidden");
    expect(spawnSync(process.execPath, ["-e", script, path]).status).toBe(0);
  });

  test("a data directory that belongs to another account is refused: root follows no links of other accounts", async () => {
    const dir = freshDir();
    chownSync(dir, 65534, 65534);
    await expect(startEmbedded({ dataDir: dir, log })).rejects.toThrow(/belongs to another account.*BELFRY_DATA_DIR/);
  });

  test("below a directory that no other account may enter it runs in a user namespace, and stays where it has begun", async () => {
    const outer = freshDir(0o700);
    const first = await startEmbedded({ dataDir: join(outer, "data"), log, durable: false });
    expect(readFileSync(`/proc/${first.pid}/uid_map`, "utf8").trim()).toMatch(/^65534\s+0\s+1$/);
    await query(first.url, "create table kept as select 7 as n");
    await first.stop();
    chmodSync(outer, 0o711);
    expect(await query((await start(join(outer, "data"))).url, "select n from kept")).toEqual([{ n: 7 }]);
    const open = usedDir();
    chmodSync(open, 0o700);
    await expect(startEmbedded({ dataDir: open, log })).rejects.toThrow(
      /account 65534 may not enter .*BELFRY_DATA_DIR/,
    );
  });

  test("without namespaces, the binaries of a closed checkout are copied beside the data, or the cure is named", () => {
    const closed = freshDir(0o700);
    const checkout = join(closed, "native");
    const inner = join(closed, "postgres");
    const path = process.env.PATH;
    onTestFinished(() => {
      process.env.PATH = path;
    });
    cpSync(nativeDir(), checkout, { recursive: true, verbatimSymlinks: true });
    const open = freshDir();
    const copy = chooseAccount(checkout, join(open, "postgres"));
    expect(copy).toMatchObject({ native: join(open, "native"), ids: nobody });
    expect(lstatSync(join(open, "native/bin/postgres")).uid).toBe(0);
    process.env.PATH = "/nowhere";
    expect(() => chooseAccount(checkout, inner)).toThrow(/account 65534 may not enter .*BELFRY_DATA_DIR/);
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
  const dir = usedDir();
  const name = (url: string) => query(url, "select pg_postmaster_start_time()::text as since");
  const alone = await useEmbedded({ dataDir: dir, log, durable: false }, name);
  const server = await start(dir);
  const beside = await useEmbedded({ dataDir: dir, log, durable: false }, name);
  expect(beside).toEqual(await name(server.url));
  expect(beside).not.toEqual(alone);
});
