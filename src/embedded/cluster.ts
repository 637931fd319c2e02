import { chmodSync, lchownSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { StartError } from "../db/start-error.ts";
import type { DataDirectory } from "./data-directory.ts";
import { type Account, runAs } from "./os-account.ts";

export interface ClusterOptions {
  connectionsMax: number;
  /** False loses data when the machine, not PostgreSQL, is killed: for tests only. */
  durable: boolean;
}

const MiB = 1024 * 1024;

/**
 * Makes the files of a new database, once: they appear there complete or not at all. All of it is done by PostgreSQL's own
 * account. @throws StartError when initdb fails
 */
export function initCluster(
  account: Account,
  place: DataDirectory,
  password: string,
  { durable }: ClusterOptions,
): void {
  const { dataDir, data } = place;
  const fresh = `${data}.new`;
  const passwordFile = join(dataDir, "initdb.password");
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, password, { mode: 0o600, flag: "wx" });
  if (account.ids) lchownSync(passwordFile, account.ids.uid, account.ids.gid);
  runAs(account, "rm", ["-rf", fresh]);
  const args = ["-D", fresh, "--username=postgres", `--pwfile=${passwordFile}`, "--auth=scram-sha-256"];
  // The locale must not depend on the machine: one that C.UTF-8 of PostgreSQL itself provides.
  args.push("--encoding=UTF8", "--no-locale", "--locale-provider=builtin", "--builtin-locale=C.UTF-8");
  if (!durable) args.push("--no-sync");
  const result = runAs(account, join(account.native, "bin/initdb"), args);
  rmSync(passwordFile, { force: true });
  const moved = result.status === 0 ? runAs(account, "mv", [fresh, data]) : result;
  if (moved.status === 0) return;
  const reason = moved.error?.message ?? lastLine(moved.stderr) ?? `it ended with ${moved.signal ?? moved.status}`;
  throw new StartError(`cannot make the embedded database in ${data}: ${reason}`);
}

function lastLine(text: string | null): string | undefined {
  const lines = (text ?? "").split("\n").map((line) => line.trim());
  return (
    lines.findLast((line) => line.includes("rror") || line.includes("FATAL")) ?? lines.findLast((line) => line !== "")
  );
}

/** @throws StartError when the files in `data` were made by another major version of PostgreSQL */
export function checkVersion({ native }: Account, data: string): void {
  // Digits and no more: another file may stand there.
  const found = /^\d+$/.exec(readFileSync(join(data, "PG_VERSION"), "utf8").trim())?.[0] ?? "another version";
  // The catalogue's bootstrap file starts with the major version.
  const ours = /^# PostgreSQL (\d+)/.exec(readFileSync(join(native, "share/postgresql/postgres.bki"), "utf8"))?.[1];
  if (ours === undefined || found === ours) return;
  throw new StartError(
    `the database in ${data} was made by PostgreSQL ${found}, this is ${ours}: start the version of this server that made it, ` +
      "dump the data there, and load them here",
  );
}

/**
 * Writes PostgreSQL's settings and rules of access again, beside its own directory. `alter system` comes after them, so an
 * operator's own settings win and stay.
 */
export function writeSettings(
  place: DataDirectory,
  socketDir: string,
  { connectionsMax, durable }: ClusterOptions,
): void {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Infinity) / MiB;
  const settings: Record<string, string> = {
    listen_addresses: "",
    unix_socket_directories: socketDir,
    hba_file: place.hbaFile,
    password_encryption: "scram-sha-256",
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
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`);
  writePublic(
    place.settingsFile,
    `# Written at every start. Settings of your own: alter system set …\n${lines.join("\n")}\n`,
  );
  writePublic(
    place.hbaFile,
    "# Written at every start: the socket, with a password that is never sent.\nlocal all all scram-sha-256\n",
  );
}

/** How many connections the PostgreSQL takes that was started with the settings of now. */
export function connectionsOf({ settingsFile }: DataDirectory): number {
  return Number(/^max_connections = '(\d+)'$/m.exec(readFileSync(settingsFile, "utf8"))?.[1] ?? 0);
}

/** Writes a file of ours that PostgreSQL's account reads. */
function writePublic(path: string, text: string): void {
  rmSync(`${path}.new`, { force: true });
  writeFileSync(`${path}.new`, text, { flag: "wx" });
  chmodSync(`${path}.new`, 0o644);
  renameSync(`${path}.new`, path);
}
