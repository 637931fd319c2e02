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
import { StartError } from "./start-error.ts";

/** Who runs PostgreSQL, which refuses to run as root, and from where. */
export interface Account {
  /** Words in front of every command: a user namespace, or nothing. */
  prefix: string[];
  /** The unprivileged account, when we are root and lend our rights to none. */
  ids: { uid: number; gid: number } | undefined;
  /** Directory of bin, lib and share that this account can execute. */
  native: string;
}

const namespace = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--"];
const nobody = { uid: 65534, gid: 65534 };

/** Whether the account can execute PostgreSQL from there and write to the directory. */
function works(account: Account, dir: string): boolean {
  const script = 'test -w "$1" && test -r "$0/share/postgresql/postgres.bki" && "$0/bin/postgres" --version';
  const [command = "/bin/sh", ...args] = [...account.prefix, "/bin/sh", "-c", script, account.native, dir];
  return spawnSync(command, args, { ...account.ids, cwd: "/", stdio: "ignore" }).status === 0;
}

function hasName(): boolean {
  try {
    return userInfo().username !== "";
  } catch {
    return false;
  }
}

/** Gives a directory with all that is in it to an account. */
function give(dir: string, { uid, gid }: { uid: number; gid: number }): void {
  if (statSync(dir).uid === uid) return;
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    lchownSync(join(entry.parentPath, entry.name), uid, gid);
  }
  // Last, so that an interrupted change is done again.
  chownSync(dir, uid, gid);
}

/** A copy of the binaries inside the directory, for a checkout that the account cannot enter. */
function copied(native: string, dir: string): string {
  const copy = join(dir, "native");
  const version = join(copy, "version");
  const source = statSync(join(native, "bin/postgres"));
  const wanted = `${version}-${source.size}-${Math.trunc(source.mtimeMs)}`;
  if (existsSync(wanted)) return copy;
  rmSync(copy, { recursive: true, force: true });
  rmSync(`${copy}.new`, { recursive: true, force: true });
  cpSync(native, `${copy}.new`, { recursive: true, verbatimSymlinks: true });
  mkdirSync(wanted.replace(copy, `${copy}.new`));
  renameSync(`${copy}.new`, copy);
  return copy;
}

function owner(path: string) {
  const { uid, gid } = statSync(path);
  return { uid, gid };
}

/**
 * Finds out how PostgreSQL can run on `dir`, and makes `dir` belong to that account. As root: an unprivileged account,
 * else a user namespace, else an unprivileged account with a copy of the binaries in `dir`.
 * @throws StartError that names BELFRY_DATA_DIR when there is no way
 */
export function chooseAccount(native: string, dir: string): Account {
  const plain: Account = { prefix: [], ids: undefined, native };
  const isolated: Account = { prefix: namespace, ids: undefined, native };
  if (process.getuid?.() !== 0) {
    // initdb wants a name for its account; containers often run under a bare number.
    const account = hasName() ? plain : isolated;
    if (works(account, dir)) return account;
    throw new StartError(
      `cannot run PostgreSQL from ${native} on ${dir}; set DATABASE_URL to a PostgreSQL of your own`,
    );
  }
  const ids = [owner(dir), nobody, owner(dirname(dirname(dir))), owner(native)].filter(({ uid }) => uid !== 0);
  const candidates: (() => Account)[] = [
    ...ids.map((id) => () => ({ ...plain, ids: id })),
    () => isolated,
    ...ids.map((id) => () => ({ ...plain, ids: id, native: copied(native, dir) })),
  ];
  for (const candidate of candidates) {
    const account = candidate();
    give(dir, account.ids ?? { uid: 0, gid: 0 });
    if (works(account, dir)) return account;
  }
  give(dir, { uid: 0, gid: 0 });
  rmSync(join(dir, "native"), { recursive: true, force: true });
  throw new StartError(
    `PostgreSQL does not run as root, and no other account may enter ${dir}: ` +
      "set BELFRY_DATA_DIR to a directory that other accounts may enter, such as /var/lib/belfry",
  );
}
