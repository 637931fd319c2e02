import { spawnSync } from "node:child_process";
import {
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { userInfo } from "node:os";
import { dirname, join } from "node:path";
import { StartError } from "../start-error.ts";

interface Ids {
  uid: number;
  gid: number;
}

/** Who runs PostgreSQL, which refuses to run as root, and from where. */
export interface Account {
  /** Words in front of every command: a user namespace, or nothing. */
  prefix: string[];
  /** The unprivileged account, when we are root and can lend it what it needs. */
  ids: Ids | undefined;
  /** Directory of bin, lib and share that this account can execute. */
  native: string;
}

const namespace = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--"];
const nobody = { uid: 65534, gid: 65534 };
const root = { uid: 0, gid: 0 };

/** Tries to run PostgreSQL there and to write to the directory; answers what went wrong. */
function trial(account: Account, dir: string): string | undefined {
  const script = 'test -w "$1" && test -r "$0/share/postgresql/postgres.bki" && "$0/bin/postgres" --version';
  const [command = "", ...args] = [...account.prefix, "/bin/sh", "-c", script, account.native, dir];
  const { status, stderr, error } = spawnSync(command, args, { ...account.ids, cwd: "/", encoding: "utf8" });
  if (status === 0) return undefined;
  return error?.message ?? (stderr.trim().split("\n").at(-1) || "permission denied");
}

function enters(ids: Ids, dir: string): boolean {
  return spawnSync("/bin/sh", ["-c", 'test -w "$0"', dir], { ...ids, cwd: "/", stdio: "ignore" }).status === 0;
}

function hasName(): boolean {
  try {
    return userInfo().username !== "";
  } catch {
    return false;
  }
}

function owner(path: string): Ids {
  const { uid, gid } = statSync(path);
  return { uid, gid };
}

/** Gives a directory with all that is in it to an account. */
function give(dir: string, { uid, gid }: Ids): void {
  if (owner(dir).uid === uid) return;
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    lchownSync(join(entry.parentPath, entry.name), uid, gid);
  }
  // Last, so that an interrupted change is done again.
  chownSync(dir, uid, gid);
}

/** A copy of the binaries inside the directory, for a checkout that the account cannot enter. */
function copied(native: string, dir: string): string {
  const copy = join(dir, "native");
  const { size, mtimeMs } = statSync(join(native, "bin/postgres"));
  const mark = `of-${size}-${Math.trunc(mtimeMs)}`;
  if (existsSync(join(copy, mark))) return copy;
  rmSync(copy, { recursive: true, force: true });
  rmSync(`${copy}.new`, { recursive: true, force: true });
  cpSync(native, `${copy}.new`, { recursive: true, verbatimSymlinks: true });
  mkdirSync(join(`${copy}.new`, mark));
  const { uid, gid } = owner(dir);
  for (const entry of readdirSync(`${copy}.new`, { recursive: true, withFileTypes: true })) {
    lchownSync(join(entry.parentPath, entry.name), uid, gid);
  }
  chownSync(`${copy}.new`, uid, gid);
  renameSync(`${copy}.new`, copy);
  return copy;
}

/**
 * Finds out how PostgreSQL can run on `dir`, and makes `dir` belong to that account. As root: an unprivileged account,
 * else a user namespace, else an unprivileged account with a copy of the binaries in `dir`. No PostgreSQL may be
 * running there.
 * @throws StartError that names BELFRY_DATA_DIR when there is no way
 */
export function chooseAccount(native: string, dir: string): Account {
  const plain: Account = { prefix: [], ids: undefined, native };
  const isolated: Account = { prefix: namespace, ids: undefined, native };
  if (process.getuid?.() !== 0) {
    // initdb wants a name for its account; containers often run under a bare number.
    const account = hasName() ? plain : isolated;
    const trouble = trial(account, dir);
    if (trouble === undefined) return account;
    throw new StartError(
      `cannot run the embedded PostgreSQL on ${dir} (${trouble}); ` +
        "set BELFRY_DATA_DIR to a directory of this account, or DATABASE_URL to a PostgreSQL of your own",
    );
  }
  const others = [owner(dir), nobody, owner(dirname(dirname(dir))), owner(native)].filter(({ uid }) => uid !== 0);
  const lent = others.map((ids) => () => ({ ...plain, ids }));
  const copies = others.map((ids) => () => {
    give(dir, ids);
    return enters(ids, dir) ? { ...plain, ids, native: copied(native, dir) } : undefined;
  });
  const namespaces = [() => isolated];
  // What has run in a namespace stays there: its files belong to root.
  const began = owner(dir).uid === 0 && existsSync(join(dir, "data"));
  for (const candidate of [...(began ? [...namespaces, ...lent] : [...lent, ...namespaces]), ...copies]) {
    const account = candidate();
    if (account === undefined) continue;
    give(dir, account.ids ?? root);
    if (trial(account, dir) === undefined) return account;
  }
  give(dir, root);
  rmSync(join(dir, "native"), { recursive: true, force: true });
  throw new StartError(
    `PostgreSQL does not run as root, and no other account may enter ${dir}: ` +
      "set BELFRY_DATA_DIR to a directory that other accounts may enter, such as /var/lib/belfry",
  );
}
