import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { connectOnce, type Db } from "../db/connect.ts";
import { sessionName } from "../db/session-name.ts";
import { StartError } from "../db/start-error.ts";
import type { Log } from "../log.ts";
import { linkedDir } from "./binaries.ts";
import { type ClusterOptions, checkVersion, connectionsOf, initCluster, writeSettings } from "./cluster.ts";
import {
  type DataDirectory,
  type DataLock,
  dataDirectoryOf,
  isCluster,
  leaveSocketDir,
  lockData,
  makeDataDir,
  readUrl,
  socketDir,
  socketDirOf,
  socketUrl,
  writeUrl,
} from "./data-directory.ts";
import { type Account, chooseAccount } from "./os-account.ts";
import { end, gone, launch, type Postmaster, readPidFile, serves } from "./postmaster.ts";

export interface EmbeddedOptions extends Partial<ClusterOptions> {
  dataDir: string;
  log: Log;
}

/** A PostgreSQL of our own, started or taken over, and watched: it is started again when it dies. */
export interface Embedded extends AsyncDisposable {
  /** With user and password, of a role that has no rights but on its own database: not for logs. */
  readonly url: string;
  /** The same of the superuser. */
  readonly adminUrl: string;
  /** The process that runs now; undefined while there is none. */
  readonly pid: number | undefined;
  /** `fast` ends connections in order; `immediate` does not, and the next start recovers. Frees the data directory. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
}

const restartMsMax = 10_000;
const steadyMs = 60_000;
const stopMsMax = 30_000;

/**
 * The PostgreSQL that outlived the server that had started it, if it can be used. One that cannot, or that takes fewer connections than are
 * needed now, is stopped.
 */
async function adopt(place: DataDirectory, connectionsMin: number): Promise<Postmaster | undefined> {
  const found = readPidFile(place.data);
  const url = readUrl(place.urlFile);
  if (found === undefined || url === undefined || serves(found.pid, place.data) === false) return undefined;
  const postmaster = { pid: found.pid, ended: gone(found.pid) };
  if (found.status === "stopping") await Promise.race([postmaster.ended, sleep(stopMsMax)]);
  if (found.status === "ready" && (await answers(url.href))) {
    if (connectionsOf(place) >= connectionsMin) return postmaster;
    await end(postmaster, "SIGINT", stopMsMax);
    return undefined;
  }
  // It is coming up, going down, or stuck: one that we start ourselves reports how it is.
  if (serves(found.pid, place.data)) await end(postmaster, "SIGQUIT", stopMsMax);
  return undefined;
}

async function startFirst(
  place: DataDirectory,
  account: Account,
  options: ClusterOptions,
  begun: (p: Postmaster) => void,
) {
  const fresh = !isCluster(place.data);
  const password = (file: string) => {
    if (fresh) return randomBytes(24).toString("hex");
    const saved = readUrl(file);
    if (saved !== undefined) return saved.password;
    throw new StartError(
      `${file}, which holds the password of the embedded database, is missing or damaged; put it back`,
    );
  };
  const own = password(place.urlFile);
  const admin = password(place.adminFile);
  const dir = await socketDir(place, account);
  writeUrl(place.urlFile, socketUrl(dir, "belfry", own, "belfry"));
  writeUrl(place.adminFile, socketUrl(dir, "postgres", admin, "postgres"));
  if (fresh) initCluster(account, place, admin, options);
  checkVersion(account, place.data);
  writeSettings(place, dir, options);
  return await launch(account, place, begun);
}

/**
 * Starts the embedded PostgreSQL of a data directory, made at the first start; one that outlived a killed server is
 * taken over as it is.
 * @throws StartError in one clear line: another server has the directory, it cannot be written, no account can run it …
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { dataDir } = options;
  makeDataDir(dataDir);
  const lock = lockData(dataDir);
  if (lock !== undefined) return await startLocked(lock, options);
  throw new StartError(
    `another server is using the data directory ${dataDir}; stop it, or set BELFRY_DATA_DIR to another directory`,
  );
}

/**
 * Runs `work` on the embedded database of a data directory: on the one that a server is running (or just starting),
 * else on one that is started for this and stopped again. @throws StartError as startEmbedded does
 */
export async function useEmbedded<T>(options: EmbeddedOptions, work: (url: string) => Promise<T>): Promise<T> {
  const { dataDir } = options;
  makeDataDir(dataDir);
  for (let attempt = 0; attempt < 300; attempt++) {
    const lock = lockData(dataDir);
    if (lock !== undefined) {
      await using embedded = await startLocked(lock, options);
      return await work(embedded.url);
    }
    const url = readUrl(dataDirectoryOf(dataDir).urlFile);
    if (url !== undefined && (await answers(url.href))) return await work(url.href);
    await sleep(100);
  }
  throw new StartError(`a server is using ${dataDir}, but its database does not answer`);
}

async function startLocked(lock: DataLock, { dataDir, log, ...rest }: EmbeddedOptions): Promise<Embedded> {
  try {
    const adopted = await adopt(dataDirectoryOf(dataDir), rest.connectionsMax ?? 0);
    return await startIn(dataDirectoryOf(dataDir), lock, log, adopted, { connectionsMax: 100, durable: true, ...rest });
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function startIn(
  place: DataDirectory,
  lock: DataLock,
  log: Log,
  adopted: Postmaster | undefined,
  options: ClusterOptions,
): Promise<Embedded> {
  let current: Postmaster | undefined;
  let account: Account | undefined;
  const begun = (postmaster: Postmaster) => {
    current = postmaster;
  };
  function chosen(): Account {
    if (account === undefined) {
      account = chooseAccount(linkedDir(place.dataDir), place.dir);
    }
    return account;
  }
  if (adopted) log.info({ pid: adopted.pid }, "took over the embedded database, which was still running");
  const postmaster = adopted ?? (await startFirst(place, chosen(), options, begun));
  const url = (readUrl(place.urlFile) as URL).href;
  const adminUrl = (readUrl(place.adminFile) as URL).href;
  await prepareDatabase({ own: url, admin: adminUrl });

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
        const { pid } = await launch(chosen(), place, begun);
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
    leaveSocketDir(place, socketDirOf(new URL(url)) ?? "");
    lock.release();
  }
  return {
    url,
    adminUrl,
    get pid() {
      return current?.pid;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** The addresses of one embedded database: of the server's own role, and of the superuser. */
export interface Addresses {
  own: string;
  admin: string;
}

/** Asks the server behind the address one thing, in a database of its. */
async function ask<T>(url: string, database: string, fn: (db: Db) => Promise<T>): Promise<T> {
  const { sql, close } = connectOnce(url.replace(/\/\w+$/, `/${database}`), sessionName("start"));
  try {
    return await fn(sql);
  } finally {
    await close();
  }
}

/** Whether the server at the address lets us in. */
export const answers = (url: string) =>
  ask(url, "postgres", (sql) => sql`select 1`).then(
    () => true,
    () => false,
  );

// Made by ourselves, of hexadecimal digits: no quotes.
const passwordOf = (url: string) => new URL(url).password;

/** Sees to it that the server's own role, which has no rights but on its database, and that database are there. May be repeated. */
export async function prepareDatabase({ own, admin }: Addresses): Promise<void> {
  await ask(admin, "postgres", async (sql) => {
    const [role] = await sql`select from pg_roles where rolname = 'belfry'`;
    if (role === undefined) await sql.unsafe(`create role belfry login password '${passwordOf(own)}'`);
    const [database] = await sql`select from pg_database where datname = 'belfry'`;
    if (database === undefined) await sql`create database belfry owner belfry`;
  });
}
