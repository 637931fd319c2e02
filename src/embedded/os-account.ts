import { spawnSync } from "node:child_process";
import { cpSync, existsSync, lchownSync, lstatSync, mkdirSync, renameSync, rmdirSync, rmSync, statSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { StartError } from "../db/start-error.ts";

interface Ids {
  uid: number;
  gid: number;
}

/** The account that runs PostgreSQL, which refuses to run as root, and from where. */
export interface Account {
  /** Words in front of every command: a user namespace, or nothing. */
  prefix: string[];
  /** The unprivileged account, when we are root and lend it a directory. */
  ids: Ids | undefined;
  /** Directory of bin, lib and share that this account can execute. */
  native: string;
}

const namespace = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--"];
const nobody = { uid: 65534, gid: 65534 };

/** Runs a program as an account, with nothing of our own environment. */
export function runAs({ prefix, ids }: Account, program: string, args: readonly string[]) {
  const [command = "", ...rest] = [...prefix, program, ...args];
  const env = { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" };
  return spawnSync(command, rest, { ...ids, cwd: "/", encoding: "utf8", env });
}

/** Tries to run PostgreSQL there and to write to the directory; returns what went wrong. */
function trial(account: Account, dir: string): string | undefined {
  const script = 'test -w "$1" && test -r "$0/share/postgresql/postgres.bki" && "$0/bin/postgres" --version';
  const { status, stderr, error } = runAs(account, "/bin/sh", ["-c", script, account.native, dir]);
  if (status === 0) return undefined;
  return error?.message ?? (stderr.trim().split("\n").at(-1) || "permission denied");
}

function hasName(): boolean {
  try {
    return userInfo().username !== "";
  } catch {
    return false;
  }
}

/** The owner of a file or a directory; a link is not followed. */
export function fileOwnerOf(path: string): Ids {
  const { uid, gid } = lstatSync(path);
  return { uid, gid };
}

/** Copies the binaries to the data directory, for a checkout that the account cannot enter or write; the copy stays ours. */
export function copied(native: string, dataDir: string): string {
  const copy = join(dataDir, "native");
  if (native === copy) return copy;
  const { size, mtimeMs } = statSync(join(native, "bin/postgres"));
  const mark = `of-${size}-${Math.trunc(mtimeMs)}`;
  if (existsSync(join(copy, mark))) return copy;
  rmSync(copy, { recursive: true, force: true });
  rmSync(`${copy}.new`, { recursive: true, force: true });
  cpSync(native, `${copy}.new`, { recursive: true, verbatimSymlinks: true });
  mkdirSync(join(`${copy}.new`, mark));
  renameSync(`${copy}.new`, copy);
  return copy;
}

/** Makes PostgreSQL's directory again for an account; what is in one of ours was left by a first start that was killed. */
function lend(dir: string, { uid, gid }: Ids): void {
  if (existsSync(dir) && fileOwnerOf(dir).uid === 0) rmSync(dir, { recursive: true });
  mkdirSync(dir, { mode: 0o700 });
  lchownSync(dir, uid, gid);
}

function plainAccount(native: string, dir: string): Account {
  // initdb wants a name for its account; containers often run under a bare number.
  const account = { prefix: hasName() ? [] : namespace, ids: undefined, native };
  if (!existsSync(dir)) mkdirSync(dir, { mode: 0o700 });
  const trouble = trial(account, dir);
  if (trouble === undefined) return account;
  throw new StartError(
    `cannot run the embedded PostgreSQL on ${dir} (${trouble}); ` +
      "set BELFRY_DATA_DIR to a directory of this account, or DATABASE_URL to a PostgreSQL of your own",
  );
}

/**
 * Finds out how PostgreSQL can run on `dir`, which it makes when it is not there. As root: the account that `dir` belongs
 * to, for a new one an account without rights, from the binaries of `native` or a copy of them beside `dir`; where that
 * account cannot enter, a user namespace. Nothing is written in a `dir` that is not ours, and nothing there changes hands.
 * @throws StartError that names BELFRY_DATA_DIR when there is no way
 */
export function chooseAccount(native: string, dir: string): Account {
  if (process.getuid?.() !== 0) return plainAccount(native, dir);
  const isolated: Account = { prefix: namespace, ids: undefined, native };
  const found = existsSync(dir) ? fileOwnerOf(dir) : undefined;
  if (found?.uid === 0 && existsSync(join(dir, "data"))) {
    // What has run in a namespace stays there.
    if (trial(isolated, dir) === undefined) return isolated;
    throw new StartError(
      `the embedded PostgreSQL on ${dir} belongs to root and runs in user namespaces, which fail here`,
    );
  }
  const known = found !== undefined && found.uid !== 0 ? found : undefined;
  const ids = known ?? nobody;
  if (known === undefined) lend(dir, ids);
  for (const binaries of [() => native, () => copied(native, dirname(dir))]) {
    const account = { prefix: [], ids, native: binaries() };
    if (trial(account, dir) === undefined) return account;
    // It may not even enter: other binaries would not help.
    if (runAs(account, "/bin/sh", ["-c", 'test -w "$0"', dir]).status !== 0) break;
  }
  if (known === undefined) {
    rmdirSync(dir);
    mkdirSync(dir, { mode: 0o700 });
    if (trial(isolated, dir) === undefined) return isolated;
    rmdirSync(dir);
  }
  throw new StartError(
    `PostgreSQL does not run as root, and account ${ids.uid} may not enter ${dir}: ` +
      "set BELFRY_DATA_DIR to a directory that other accounts may enter, such as /var/lib/belfry",
  );
}
