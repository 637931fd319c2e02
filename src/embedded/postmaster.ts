import { execFileSync, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StartError } from "../db/start-error.ts";
import { type DataDirectory, readUrl, socketDirOf } from "./data-directory.ts";
import { type Account, fileOwnerOf, runAs } from "./os-account.ts";

/** PostgreSQL's first process. */
export interface Postmaster {
  pid: number;
  /** Resolves when the process is gone. */
  ended: Promise<void>;
}

const pidMax = 2 ** 31 - 1;

/** Reads what a running PostgreSQL writes into its data directory; undefined when there is none, or no process is named. */
export function readPidFile(data: string): { pid: number; status: string } | undefined {
  try {
    const lines = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
    const pid = Number(lines[0]);
    return pid > 1 && pid <= pidMax ? { pid, status: lines[7]?.trim() ?? "" } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the process exists, also when it belongs to another account. */
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * Whether a process is the PostgreSQL of this data directory; undefined when it cannot be seen. Numbers are given again, and
 * PostgreSQL's account may have written any: a process of another account is none.
 */
export function serves(pid: number, data: string): boolean | undefined {
  try {
    const { uid } = fileOwnerOf(dirname(data));
    if (process.platform === "linux") {
      return statSync(`/proc/${pid}`).uid === uid && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(data);
    }
    const line = execFileSync("ps", ["-ww", "-o", "uid=,command=", "-p", String(pid)], { encoding: "utf8" });
    return Number.parseInt(line, 10) === uid && line.includes(data);
  } catch {
    return undefined;
  }
}

/** Resolves when a process that is not our child is gone. */
export async function gone(pid: number): Promise<void> {
  while (alive(pid)) await sleep(100, undefined, { ref: false });
}

/** Ends PostgreSQL, and sees to it: in order (SIGINT), at once (SIGQUIT), by force. */
export async function end({ pid, ended }: Postmaster, signal: "SIGINT" | "SIGQUIT", waitMs: number): Promise<void> {
  for (const next of signal === "SIGINT"
    ? (["SIGINT", "SIGQUIT", "SIGKILL"] as const)
    : (["SIGQUIT", "SIGKILL"] as const)) {
    try {
      process.kill(pid, next);
    } catch {
      return;
    }
    const timer = Promise.withResolvers<boolean>();
    const late = setTimeout(timer.resolve, waitMs, true);
    const stuck = await Promise.race([ended.then(() => false), timer.promise]);
    clearTimeout(late);
    if (!stuck) return;
  }
}

/** Tells whether a process runs PostgreSQL. One that is ending counts: it has lost its program, and may still hold shared memory. */
function isPostgres(pid: number): boolean {
  try {
    return /\/postgres(?: \(deleted\))?$/.test(readlinkSync(`/proc/${pid}/exe`));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/**
 * Kills what is left of a PostgreSQL whose first process is gone: a statement that is still running holds the shared
 * memory, and a new one would not start until it ends. Returns whether there was any.
 */
function killOrphans(data: string): boolean {
  if (process.platform !== "linux") return false;
  let found = false;
  const here = realpathSync(data);
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!(pid > 1) || pid === process.pid) continue;
    try {
      if (readlinkSync(`/proc/${pid}/cwd`) !== here || !isPostgres(pid)) continue;
      found = true;
      process.kill(pid, "SIGKILL");
    } catch {
      // Not ours to see, or gone meanwhile.
    }
  }
  return found;
}

/** The last complaint in the log, for one line about a PostgreSQL that did not start. */
function complaint(path: string, from: number): string {
  if (!existsSync(path)) return "its log is gone";
  const lines = readFileSync(path).subarray(from).toString("utf8").split("\n");
  const line = lines.findLast((text) => /FATAL|PANIC|ERROR|error/.test(text)) ?? lines.findLast((text) => text !== "");
  return line?.replace(/^.*?(FATAL|PANIC|ERROR): +/, "") ?? "it said nothing";
}

function openLog(path: string): number {
  if (existsSync(path) && statSync(path).size > 10 * 1024 * 1024) renameSync(path, `${path}.old`);
  return openSync(path, "a", 0o600);
}

/**
 * Clears away what keeps PostgreSQL from starting after a power cut or kill -9. Our lock shows that no server is here: what outlived one is
 * ended, and files that name no process, or another one, are removed.
 */
async function clearLeftovers(account: Account, { data, urlFile }: DataDirectory): Promise<void> {
  const before = readPidFile(data);
  const lives = before !== undefined && alive(before.pid);
  if (lives && serves(before.pid, data) !== false) return;
  while (killOrphans(data)) await sleep(20);
  const url = readUrl(urlFile);
  const socket = url && socketDirOf(url);
  const left = socket === undefined ? [] : [`${socket}/.s.PGSQL.5432.lock`];
  // PostgreSQL takes any process of that number for its predecessor. A dead one's file it needs, to find shared memory that is still in use.
  if (before === undefined || lives) left.push(join(data, "postmaster.pid"));
  const found = left.filter((path) => existsSync(path));
  if (found.length > 0) runAs(account, "rm", ["-f", ...found]);
}

/**
 * Starts PostgreSQL in a process group of its own, so that Ctrl-C is for the server, which stops its database last.
 * `begun` gets the process at once; resolves when PostgreSQL answers, however long it takes to recover.
 * @throws StartError with PostgreSQL's own last words
 */
export async function launch(
  account: Account,
  place: DataDirectory,
  begun: (postmaster: Postmaster) => void,
): Promise<Postmaster> {
  const { prefix, ids, native } = account;
  const { data, logFile, settingsFile } = place;
  await clearLeftovers(account, place);
  const from = existsSync(logFile) ? statSync(logFile).size : 0;
  const log = openLog(logFile);
  const program = [...prefix, join(native, "bin/postgres"), "-D", data, "-c", `config_file=${settingsFile}`];
  const [command = "", ...args] = program;
  const env = { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" };
  const child = spawn(command, args, { ...ids, env, cwd: "/", detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  child.unref();
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let failure: string | undefined;
  child.once("error", (error) => {
    failure = error.message;
    resolve();
  });
  child.once("exit", () => {
    failure ??= complaint(logFile, from);
    resolve();
  });
  const postmaster = { pid: child.pid ?? 0, ended };
  if (child.pid) begun(postmaster);
  for (;;) {
    const found = readPidFile(data);
    if (found?.status === "ready" && found.pid === child.pid) return postmaster;
    await Promise.race([sleep(20), ended]);
    if (failure !== undefined) throw new StartError(`the embedded database did not start: ${failure}`);
  }
}
