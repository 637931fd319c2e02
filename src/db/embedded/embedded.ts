import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connectOnce, type Db } from "../connect.ts";
import { StartError } from "../start-error.ts";
import { linkLibraries, nativeDir } from "./binaries.ts";
import { type ClusterOptions, checkVersion, initCluster, isCluster, makeDir, writeSettings } from "./cluster.ts";
import { type DataLock, lockData } from "./data-lock.ts";
import { type Account, chooseAccount } from "./os-account.ts";
import { end, gone, launch, type Postmaster, readPidFile, serves } from "./postmaster.ts";

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
export interface Embedded extends AsyncDisposable {
  /** With user and password: not for logs. */
  readonly url: string;
  /** The process that runs now; undefined while there is none. */
  readonly pid: number | undefined;
  /** `fast` ends connections in order; `immediate` does not, and the next start recovers. Frees the data directory. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
}

const restartMsMax = 10_000;
const steadyMs = 60_000;
const stopMsMax = 30_000;

interface Place {
  /** Everything that belongs to PostgreSQL's account. */
  dir: string;
  data: string;
  logFile: string;
  urlFile: string;
}

/** Where things lie in a data directory. */
export function placeOf(dataDir: string): Place {
  const dir = join(dataDir, "postgres");
  return { dir, data: join(dir, "data"), logFile: join(dir, "log"), urlFile: join(dataDir, "database.url") };
}

function writeUrl({ urlFile }: Place, password: string, port: number): string {
  const url = `postgres://belfry:${password}@127.0.0.1:${port}/belfry`;
  writeFileSync(`${urlFile}.new`, `${url}\n`, { mode: 0o600 });
  renameSync(`${urlFile}.new`, urlFile);
  return url;
}

/** The saved address, with its password. */
export function readUrl({ urlFile }: Place): URL | undefined {
  return existsSync(urlFile) ? new URL(readFileSync(urlFile, "utf8").trim()) : undefined;
}

/** A free port on loopback: `wanted` if it still is. */
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

/** Asks the server behind the address one thing, in its first database. */
async function ask<T>(url: string, fn: (db: Db) => Promise<T>): Promise<T> {
  const { sql, close } = connectOnce(url.replace(/\/belfry$/, "/postgres"), "belfry start");
  try {
    return await fn(sql);
  } finally {
    await close();
  }
}

/** Whether the server at the address lets us in. */
export const answers = (url: string) =>
  ask(url, (sql) => sql`select 1`).then(
    () => true,
    () => false,
  );

async function makeDatabase(url: string): Promise<void> {
  await ask(url, async (sql) => {
    const found = await sql`select 1 from pg_database where datname = 'belfry'`;
    if (found.length === 0) await sql`create database belfry`;
  });
}

/** The PostgreSQL that outlived the server that had started it, if it can be used. One that cannot is stopped. */
async function adopt(place: Place): Promise<{ postmaster: Postmaster; url: string } | undefined> {
  const found = readPidFile(place.data);
  const url = readUrl(place);
  if (found === undefined || url === undefined || serves(found.pid, place.data) === false) return undefined;
  const postmaster = { pid: found.pid, ended: gone(found.pid) };
  if (found.status === "stopping") await Promise.race([postmaster.ended, sleep(stopMsMax)]);
  if (found.status === "ready" && url.port === String(found.port) && (await answers(url.href)))
    return { postmaster, url: url.href };
  // It is coming up, going down, or stuck: one that we start ourselves tells how it is.
  if (serves(found.pid, place.data)) await end(postmaster, "SIGQUIT", stopMsMax);
  return undefined;
}

async function startFirst(place: Place, account: Account, options: ClusterOptions, begun: (p: Postmaster) => void) {
  const fresh = !isCluster(place.data);
  const saved = readUrl(place);
  if (!fresh && saved === undefined) {
    throw new StartError(
      `${place.urlFile}, which holds the password of the embedded database, is missing; put it back`,
    );
  }
  const password = fresh ? randomBytes(24).toString("hex") : (saved as URL).password;
  const url = writeUrl(place, password, await freePort(Number(saved?.port ?? 0)));
  if (fresh) initCluster(account, place.data, password, options);
  checkVersion(account, place.data);
  writeSettings(account, place.data, options);
  const postmaster = await launch(account, place.data, place.logFile, Number(new URL(url).port), begun);
  return { postmaster, url };
}

/**
 * Starts the embedded PostgreSQL of a data directory, made at the first start; one that outlived a killed server is
 * taken over as it is.
 * @throws StartError in one clear line: another server has the directory, it cannot be written, no account can run it …
 */
export async function startEmbedded({ dataDir, log, ...rest }: EmbeddedOptions): Promise<Embedded> {
  const options: ClusterOptions = { connectionsMax: 100, durable: true, ...rest };
  makeDir(dataDir, 0o711);
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
  let current: Postmaster | undefined;
  let account: Account | undefined;
  const begun = (postmaster: Postmaster) => {
    current = postmaster;
  };
  function chosen(): Account {
    if (account === undefined) {
      const native = nativeDir();
      linkLibraries(native);
      account = chooseAccount(native, place.dir);
    }
    return account;
  }
  const adopted = await adopt(place);
  if (adopted) log.info({ pid: adopted.postmaster.pid }, "took over the embedded database, which was still running");
  const { url, postmaster } = adopted ?? (await startFirst(place, chosen(), options, begun));
  const port = Number(new URL(url).port);
  await makeDatabase(url);

  const { promise: stopped, resolve: endWatch } = Promise.withResolvers<void>();
  let stopping = false;

  async function watch(first: Postmaster) {
    let waitMs = 0;
    current = first;
    let since = performance.now();
    for (;;) {
      await current?.ended;
      current = undefined;
      if (stopping) return;
      if (performance.now() - since > steadyMs) waitMs = 0;
      log.warn({ waitMs }, "the embedded database has died; starting it again");
      await Promise.race([sleep(waitMs), stopped]);
      if (stopping) return;
      waitMs = Math.min(Math.max(waitMs * 2, 100), restartMsMax);
      since = performance.now();
      try {
        const { pid } = await launch(chosen(), place.data, place.logFile, port, begun);
        log.info({ pid, tookMs: Math.round(performance.now() - since) }, "the embedded database is back");
      } catch (error) {
        log.error({ reason: (error as Error).message }, "the embedded database did not start again");
      }
    }
  }
  const watching = watch(postmaster);
  // A process that ends without stop() asks PostgreSQL to stop in order, and does not wait for it.
  const leave = () => {
    if (current) process.kill(current.pid, "SIGINT");
  };
  process.once("exit", leave);

  async function stop(mode: "fast" | "immediate" = "fast") {
    stopping = true;
    endWatch();
    process.removeListener("exit", leave);
    if (current) await end(current, mode === "fast" ? "SIGINT" : "SIGQUIT", stopMsMax);
    await watching;
    lock.release();
  }
  return {
    url,
    get pid() {
      return current?.pid;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
