import {
  chmodSync,
  closeSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StartError } from "../db/start-error.ts";
import { type Account, fileOwnerOf } from "./os-account.ts";

/** The parts of a data directory. What the server writes lies beside `dir`, which belongs to PostgreSQL's account. */
export interface DataDirectory {
  dataDir: string;
  /** Everything that belongs to PostgreSQL's account; as root the server writes nothing there. */
  dir: string;
  data: string;
  logFile: string;
  settingsFile: string;
  hbaFile: string;
  /** The address of the server's own role, which has no rights but on its database. */
  urlFile: string;
  /** That of the superuser. */
  adminFile: string;
}

/** Where things lie in a data directory. */
export function dataDirectoryOf(dataDir: string): DataDirectory {
  const dir = join(dataDir, "postgres");
  return {
    dataDir,
    dir,
    data: join(dir, "data"),
    logFile: join(dataDir, "postgres.log"),
    settingsFile: join(dataDir, "postgresql.conf"),
    hbaFile: join(dataDir, "pg_hba.conf"),
    urlFile: join(dataDir, "database.url"),
    adminFile: join(dataDir, "database-admin.url"),
  };
}

/** Whether initdb has finished here once. */
export function isCluster(data: string): boolean {
  return existsSync(join(data, "PG_VERSION"));
}

/** The address of a database behind a socket in a directory, as libpq writes it. */
export function socketUrl(socketDir: string, role: string, password: string, database: string): string {
  return `postgres://${role}:${password}@${encodeURIComponent(socketDir)}:5432/${database}`;
}

/** The directory of the socket in such an address; undefined when it leads elsewhere. */
export function socketDirOf(url: URL): string | undefined {
  return url.hostname.startsWith("%2F") ? decodeURIComponent(url.hostname) : undefined;
}

/** Keeps an address, readable by this account alone. The password stands nowhere else: a power cut must not empty the file. */
export function writeUrl(file: string, url: string): void {
  if (readUrl(file)?.href === new URL(url).href) return;
  writeFileSync(`${file}.new`, `${url}\n`, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
}

/** Reads a saved address, with its password; undefined when there is none, or the file is damaged. */
export function readUrl(file: string): URL | undefined {
  return existsSync(file) ? (URL.parse(readFileSync(file, "utf8").trim()) ?? undefined) : undefined;
}

/** Makes a directory that may be there already. @throws StartError that names it and the setting */
export function makeDataDir(path: string): void {
  try {
    makeWithParents(path, 0o711);
    const probe = join(path, ".writable");
    // Root follows no links of other accounts: only it may write here.
    if (process.getuid?.() === 0 && fileOwnerOf(path).uid !== 0) {
      throw new StartError(
        `the data directory ${path} belongs to another account: start the server as that account, give the directory to ` +
          "root, or set BELFRY_DATA_DIR to another one",
      );
    }
    writeFileSync(probe, "");
    rmSync(probe);
  } catch (error) {
    if (error instanceof StartError) throw error;
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

// A path of a socket may have 107 bytes; PostgreSQL adds this name, and another one of the same length for its lock.
const socketName = "/.s.PGSQL.5432.lock";
const pathBytesMax = 103;

/** Whether a socket can be made in a directory; not every file system has them. */
async function takesSockets(dir: string): Promise<boolean> {
  const server = createServer();
  const made = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(join(dir, ".socket"), () => resolve(true));
  });
  if (made) await new Promise((resolve) => server.close(resolve));
  return made;
}

/**
 * The directory of the socket, which only the server's account and PostgreSQL's can enter: in the data directory, or in
 * that for temporary files when the path would be too long, or no socket can be made there.
 */
export async function socketDir({ dataDir, urlFile }: DataDirectory, { ids }: Account): Promise<string> {
  const inside = join(dataDir, "socket");
  const short = Buffer.byteLength(inside + socketName) <= pathBytesMax;
  const uid = ids?.uid ?? process.getuid?.();
  const saved = readUrl(urlFile);
  const before = saved && socketDirOf(saved);
  const mine = (path: string) => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found?.isDirectory() === true && found.uid === uid && (found.mode & 0o077) === 0;
  };
  let dir = inside;
  if (short && (await takesSockets(dataDir))) {
    if (mine(inside)) return inside;
    rmdirIfEmpty(inside);
    mkdirSync(inside, { mode: 0o700 });
  } else {
    if (before !== undefined && before !== inside && mine(before)) return before;
    dir = temporaryDir();
  }
  // Before any other account can enter it.
  if (ids) lchownSync(dir, ids.uid, ids.gid);
  return dir;
}

/** @throws StartError that names the directory for temporary files, where none can be made in it */
function temporaryDir(): string {
  try {
    return mkdtempSync(join(tmpdir(), "belfry-"));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new StartError(
      `cannot make a directory for the embedded database's socket in ${tmpdir()} (${code ?? message}): set TMPDIR to a directory that is there ` +
        "and can be written, or BELFRY_DATA_DIR to one with a shorter path",
    );
  }
}

/** Removes a directory for the socket that lies outside of the data directory. */
export function leaveSocketDir({ dataDir }: DataDirectory, dir: string): void {
  if (dir !== join(dataDir, "socket")) rmdirIfEmpty(dir);
}

function rmdirIfEmpty(dir: string): void {
  try {
    rmdirSync(dir);
  } catch {
    // It was not there, or another process uses it.
  }
}

/** A data directory held by this process. */
export interface DataLock {
  release(): void;
}

/**
 * Takes the data directory for this process, or answers undefined when another one has it. The lock is the kernel's (a
 * file lock, taken through SQLite because Node has none of its own): it ends with the process, also by kill -9, cannot
 * go stale, and holds across containers that share the directory.
 * @throws StartError when the directory cannot be locked
 */
export function lockData(dataDir: string): DataLock | undefined {
  const path = join(dataDir, "lock");
  let file: DatabaseSync | undefined;
  try {
    // Every account that may read the file could hold a lock on it, too. It is not opened when it is there: closing it would end a lock
    // that this process holds.
    if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
    chmodSync(path, 0o600);
    file = new DatabaseSync(path, { timeout: 0 });
    // No file for a journal: nothing is ever written.
    file.exec("pragma journal_mode = memory; begin exclusive");
    const held = file;
    return { release: () => held.close() };
  } catch (error) {
    file?.close();
    // SQLITE_BUSY
    if ((error as { errcode?: number }).errcode === 5) return undefined;
    throw new StartError(`cannot lock the data directory ${dataDir}: ${(error as Error).message}`);
  }
}
