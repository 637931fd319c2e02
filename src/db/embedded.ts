import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { type Account, chooseAccount } from "./account.ts";
import { linkLibraries, nativeDir } from "./binaries.ts";
import { type ClusterOptions, checkVersion, initCluster, isCluster, makeDir, writeSettings } from "./cluster.ts";
import { clientOptions } from "./connect.ts";
import { type DataLock, lockData } from "./data-lock.ts";
import { alive, killOrphans, readPostmaster, serves } from "./postmaster.ts";
import { StartError } from "./start-error.ts";

interface Log {
  info(values: object, message: string): void;
  warn(values: object, message: string): void;
  error(values: object, message: string): void;
}

export interface EmbeddedOptions extends Partial<ClusterOptions> {
  dataDir: string;
  log: Log;
}

/** A PostgreSQL of our own, started or taken over, and watched: it is started again when it dies. */
export interface Embedded {
  /** With user and password: not for logs. */
  readonly url: string;
  /** Process of the PostgreSQL that runs now; undefined while it is being started again. */
  readonly pid: number | undefined;
  /** `fast` ends connections in order; `immediate` does not, and the next start recovers. Frees the data directory. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
}

const restartMsMax = 10_000;

async function freePort(wanted: number): Promise<number> {
  for (const port of [wanted, 0]) {
    const server = createServer();
    const taken = await new Promise<number>((resolve) => {
      server.once("error", () => resolve(0));
      server.listen(port, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
    });
    await new Promise((resolve) => server.close(resolve));
    if (taken !== 0) return taken;
  }
  throw new StartError("there is no free port on 127.0.0.1 for the embedded database");
}

interface Place {
  /** Everything that belongs to PostgreSQL's account. */
  dir: string;
  data: string;
  logFile: string;
  urlFile: string;
}

function placeOf(dataDir: string): Place {
  const dir = join(dataDir, "postgres");
  return { dir, data: join(dir, "data"), logFile: join(dir, "log"), urlFile: join(dataDir, "database.url") };
}

function writeUrl(place: Place, password: string, port: number): string {
  const url = `postgres://belfry:${password}@127.0.0.1:${port}/belfry`;
  if (existsSync(place.urlFile) && readFileSync(place.urlFile, "utf8").trim() === url) return url;
  writeFileSync(`${place.urlFile}.new`, `${url}\n`, { mode: 0o600 });
  renameSync(`${place.urlFile}.new`, place.urlFile);
  return url;
}

function savedUrl(place: Place): URL | undefined {
  return existsSync(place.urlFile) ? new URL(readFileSync(place.urlFile, "utf8").trim()) : undefined;
}

function openLog(path: string): number {
  if (existsSync(path) && statSync(path).size > 10 * 1024 * 1024) renameSync(path, `${path}.old`);
  return openSync(path, "a", 0o600);
}

/** The last complaint in the log, for one line about a PostgreSQL that did not start. */
function complaint(path: string, from: number): string {
  const lines = readFileSync(path).subarray(from).toString("utf8").split("\n");
  const line = lines.findLast((text) => /FATAL|PANIC|ERROR|error/.test(text)) ?? lines.findLast((text) => text !== "");
  return line?.replace(/^.*?(FATAL|PANIC|ERROR): +/, "") ?? "it said nothing";
}

function spawnPostgres({ prefix, ids, native }: Account, place: Place, port: number): ChildProcess {
  const log = openLog(place.logFile);
  const [command = "", ...args] = [...prefix, join(native, "bin/postgres"), "-D", place.data, "-p", String(port)];
  const env = { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" };
  // A process group of its own: Ctrl-C is for the server, which then stops its database last.
  const child = spawn(command, args, { ...ids, env, cwd: "/", detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  child.unref();
  return child;
}

/** Starts PostgreSQL and waits until it answers, however long it takes to recover. */
async function launch(account: Account, place: Place, port: number): Promise<Running> {
  rmSync(join(place.data, "postmaster.pid"), { force: true });
  const logged = existsSync(place.logFile) ? statSync(place.logFile).size : 0;
  const child = spawnPostgres(account, place, port);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let failure: string | undefined;
  child.once("error", (error) => {
    failure = error.message;
    resolve();
  });
  child.once("exit", () => {
    failure ??= complaint(place.logFile, logged);
    resolve();
  });
  for (;;) {
    const found = readPostmaster(place.data);
    if (found?.ready && found.pid === child.pid) return { pid: found.pid, ended };
    await Promise.race([sleep(20), ended]);
    if (failure !== undefined) throw new StartError(`the embedded database did not start: ${failure}`);
  }
}

interface Running {
  pid: number;
  ended: Promise<void>;
}

/** A PostgreSQL that outlived the server that had started it; undefined when there is none, or none that can be used. */
async function adopt(place: Place): Promise<{ running: Running; port: number } | undefined> {
  const found = readPostmaster(place.data);
  if (found === undefined || !serves(found.pid, place.data)) return undefined;
  if (found.ready && (await answers(savedUrl(place), found.port))) {
    return { running: { pid: found.pid, ended: gone(found.pid) }, port: found.port };
  }
  // It is coming up, going down or stuck: one that we start ourselves tells why it does not start.
  await end(found.pid, "SIGQUIT", 5000);
  return undefined;
}

async function answers(url: URL | undefined, port: number): Promise<boolean> {
  if (url === undefined || url.port !== String(port)) return false;
  const sql = postgres(url.href.replace(/\/belfry$/, "/postgres"), {
    ...clientOptions,
    max: 1,
    connect_timeout: 3,
  } as never);
  try {
    await sql`select 1`;
    return true;
  } catch {
    return false;
  } finally {
    await sql.end({ timeout: 0 });
  }
}

async function gone(pid: number): Promise<void> {
  while (alive(pid)) await sleep(100, undefined, { ref: false });
}

async function end(pid: number, signal: NodeJS.Signals, waitMs: number): Promise<void> {
  try {
    process.kill(pid, signal);
  } catch {
    return;
  }
  const deadline = Date.now() + waitMs;
  while (alive(pid)) {
    if (Date.now() > deadline) {
      if (signal !== "SIGKILL") await end(pid, signal === "SIGINT" ? "SIGQUIT" : "SIGKILL", 5000);
      return;
    }
    await sleep(20);
  }
}

async function makeDatabase(url: string): Promise<void> {
  const sql = postgres(url.replace(/\/belfry$/, "/postgres"), { ...clientOptions, max: 1 } as never);
  try {
    const found = await sql`select 1 from pg_database where datname = 'belfry'`;
    if (found.length === 0) await sql`create database belfry`;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/**
 * Starts the embedded PostgreSQL of a data directory, made at the first start; one that outlived a killed server is
 * taken over as it is.
 * @throws StartError in one clear line: another server has the directory, it cannot be written, no account can run it …
 */
export async function startEmbedded({ dataDir, log, ...rest }: EmbeddedOptions): Promise<Embedded> {
  const root = process.getuid?.() === 0;
  const options: ClusterOptions = { connectionsMax: 100, durable: true, ...rest };
  makeDir(dataDir, root ? 0o711 : 0o700);
  const lock = lockData(dataDir);
  if (lock === undefined) {
    throw new StartError(
      `another server is using the data directory ${dataDir}; stop it, or set BELFRY_DATA_DIR to another directory`,
    );
  }
  try {
    return await startLocked(placeOf(dataDir), lock, log, options);
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function startLocked(place: Place, lock: DataLock, log: Log, options: ClusterOptions): Promise<Embedded> {
  makeDir(place.dir, 0o700);
  let adopted = await adopt(place);
  const native = nativeDir();
  linkLibraries(native);
  const account = chooseAccount(native, place.dir);
  const fresh = !isCluster(place.data);
  const saved = savedUrl(place);
  if (!fresh && saved === undefined) {
    throw new StartError(
      `${place.urlFile}, which holds the password of the embedded database, is missing; put it back`,
    );
  }
  const password = fresh ? randomBytes(24).toString("hex") : (saved as URL).password;
  const port = adopted?.port ?? (await freePort(Number(saved?.port ?? 0)));
  const url = writeUrl(place, password, port);
  if (fresh) initCluster(account, place.data, password, options);
  checkVersion(account, place.data);
  writeSettings(account, place.data, options);
  if (adopted) log.info({ pid: adopted.running.pid }, "took over the embedded database, which was still running");
  else killOrphans(place.data);
  let running: Running | undefined = adopted?.running ?? (await launch(account, place, port));
  adopted = undefined;
  let stopping = false;

  async function watch() {
    for (let waitMs = 0; ; ) {
      await running?.ended;
      if (stopping) return;
      running = undefined;
      log.warn({ waitMs }, "the embedded database has died; starting it again");
      await sleep(waitMs, undefined, { ref: false });
      const since = Date.now();
      try {
        killOrphans(place.data);
        running = await launch(account, place, port);
        log.info({ pid: running.pid, tookMs: Date.now() - since }, "the embedded database is back");
        waitMs = waitMs === 0 ? 100 : waitMs;
      } catch (error) {
        log.error({ reason: (error as Error).message }, "the embedded database did not start again");
        waitMs = Math.min(Math.max(waitMs * 2, 200), restartMsMax);
      }
    }
  }
  const watching = watch();
  await makeDatabase(url);

  return {
    url,
    get pid() {
      return running?.pid;
    },
    async stop(mode = "fast") {
      stopping = true;
      if (running) await end(running.pid, mode === "fast" ? "SIGINT" : "SIGQUIT", 30_000);
      await watching;
      lock.release();
    },
  };
}
