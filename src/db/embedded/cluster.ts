import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { dirname, join } from "node:path";
import { StartError } from "../start-error.ts";
import type { Account } from "./os-account.ts";

export interface ClusterOptions {
  connectionsMax: number;
  /** False loses data when the machine, not PostgreSQL, is killed: for tests only. */
  durable: boolean;
}

const MiB = 1024 * 1024;

/**
 * Makes the files of a new database in `data`, once: they appear there complete or not at all.
 * @throws StartError when initdb fails, or when the files are of another PostgreSQL version
 */
export function initCluster(account: Account, data: string, password: string, { durable }: ClusterOptions): void {
  const fresh = `${data}.new`;
  const passwordFile = `${data}.password`;
  rmSync(fresh, { recursive: true, force: true });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (account.ids) chownSync(passwordFile, account.ids.uid, account.ids.gid);
  const args = ["-D", fresh, "--username=belfry", `--pwfile=${passwordFile}`, "--auth=scram-sha-256"];
  // The locale must not depend on the machine: one that C.UTF-8 of PostgreSQL itself provides.
  args.push("--encoding=UTF8", "--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8");
  if (!durable) args.push("--no-sync");
  const result = run(account, "initdb", args);
  rmSync(passwordFile, { force: true });
  if (result.status !== 0) {
    const reason =
      result.error?.message ?? lastLine(result.stderr) ?? `it ended with ${result.signal ?? result.status}`;
    throw new StartError(`cannot make the embedded database in ${data}: ${reason}`);
  }
  renameSync(fresh, data);
}

function run({ prefix, ids, native }: Account, program: string, args: string[]) {
  const [command = "", ...rest] = [...prefix, join(native, "bin", program), ...args];
  return spawnSync(command, rest, {
    ...ids,
    cwd: "/",
    encoding: "utf8",
    env: { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" },
  });
}

function lastLine(text: string | null): string | undefined {
  const lines = (text ?? "").split("\n").map((line) => line.trim());
  return (
    lines.findLast((line) => line.includes("rror") || line.includes("FATAL")) ?? lines.findLast((line) => line !== "")
  );
}

/** @throws StartError when the files in `data` were made by another major version of PostgreSQL */
export function checkVersion({ native }: Account, data: string): void {
  const found = readFileSync(join(data, "PG_VERSION"), "utf8").trim();
  // The catalogue's bootstrap file starts with the major version.
  const ours = /^# PostgreSQL (\d+)/.exec(readFileSync(join(native, "share/postgresql/postgres.bki"), "utf8"))?.[1];
  if (ours === undefined || found === ours) return;
  throw new StartError(
    `the database in ${data} was made by PostgreSQL ${found}, this is ${ours}: start the version of this server that made it, ` +
      "dump the data there, and load them here",
  );
}

/** Writes postgresql.conf anew. `alter system` comes after it, so an operator's own settings win and stay. */
export function writeSettings(account: Account, data: string, { connectionsMax, durable }: ClusterOptions): void {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Infinity) / MiB;
  const settings: Record<string, string> = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: String(connectionsMax),
    shared_buffers: `${Math.round(Math.min(Math.max(memory / 4, 64), 1024))}MB`,
    effective_cache_size: `${Math.round(Math.max(memory / 2, 128))}MB`,
    random_page_cost: "1.1",
    jit: "off",
    wal_compression: "on",
    max_wal_size: "1GB",
    autovacuum_naptime: "15s",
    timezone: "UTC",
    log_timezone: "UTC",
    lc_messages: "C",
    // What PostgreSQL itself has to say, without the statements of clients and their data.
    log_min_messages: "log",
    log_min_error_statement: "panic",
    log_checkpoints: "off",
  };
  // After a crash PostgreSQL makes sure of every file; file by file that takes a second or two, in one call much less.
  if (process.platform === "linux") settings.recovery_init_sync_method = "syncfs";
  if (!durable) Object.assign(settings, { fsync: "off", full_page_writes: "off" });
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'`);
  const text = `# Written at every start. Settings of your own: alter system set …\n${lines.join("\n")}\n`;
  const path = join(data, "postgresql.conf");
  writeFileSync(path, text, { mode: 0o600 });
  if (account.ids) chownSync(path, account.ids.uid, account.ids.gid);
}

/** Makes a directory that may be there already. @throws StartError that names it and the setting */
export function makeDir(path: string, mode: number): void {
  try {
    makeWithParents(path, mode);
    const probe = join(path, ".writable");
    writeFileSync(probe, "");
    rmSync(probe);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new StartError(
      `cannot write to the data directory ${path} (${code ?? message}); set BELFRY_DATA_DIR to another one`,
    );
  }
}

// Not mkdir's own `recursive`: where a directory exists and none can be made in it, as in /proc, that never ends.
function makeWithParents(path: string, mode: number): void {
  if (existsSync(path)) return;
  if (!existsSync(dirname(path))) makeWithParents(dirname(path), mode);
  mkdirSync(path, { mode });
  // What the umask took away.
  chmodSync(path, mode);
}

/** Whether initdb has finished here once. */
export function isCluster(data: string): boolean {
  return existsSync(join(data, "PG_VERSION"));
}
