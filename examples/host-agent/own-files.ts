import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";

/*
 * The agent's own files. Whoever else can write to their folder could put links there, to have files of this account read, sent or written:
 * such a folder is refused, and no link is followed within one.
 */

const isOwn = (uid: number) => process.getuid === undefined || uid === process.getuid();

/** Makes a folder that only this account can write to. @throws Error that says what is wrong with one that is there */
export function ownFolder(folder: string): void {
  const link = lstatSync(folder, { throwIfNoEntry: false });
  if (link?.isSymbolicLink() && !isOwn(link.uid) && link.uid !== 0)
    throw new Error(`${folder} is a link that another account has made`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = statSync(folder);
  if (!isOwn(uid)) throw new Error(`${folder} belongs to another account`);
  if (process.platform !== "win32" && (mode & 0o022) !== 0)
    throw new Error(`other accounts can write to ${folder}: chmod 700 it, or set another AGENT_BUFFER_DIR`);
}

const noLink = constants.O_NOFOLLOW ?? 0;
// A pipe in the place of a file would hold whoever opens it.
const atOnce = constants.O_NONBLOCK ?? 0;

/** Whether a file is a plain one of this account. */
export function isOwnFile(file: string): boolean {
  const found = lstatSync(file, { throwIfNoEntry: false });
  return found?.isFile() === true && isOwn(found.uid);
}

/** Makes a file that is not there yet; a link is there, too. @throws Error with the code EEXIST */
export function makeOwn(file: string): number {
  return openSync(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND, 0o600);
}

/** Opens one of our files to read it. @throws Error where it is something else */
export function openOwn(file: string): number {
  const fd = openSync(file, constants.O_RDONLY | noLink | atOnce);
  const found = fstatSync(fd);
  if (found.isFile() && isOwn(found.uid)) return fd;
  closeSync(fd);
  throw new Error(`${file} is no file of this account`);
}

/** The text of one of our files; undefined where there is none, or one that is larger than they get. */
export function readOwn(file: string, bytesMax = 1024 * 1024): string | undefined {
  let fd: number | undefined;
  try {
    fd = openOwn(file);
    const { size } = fstatSync(fd);
    if (size > bytesMax) return undefined;
    const bytes = Buffer.alloc(size);
    return bytes.toString("utf8", 0, readSync(fd, bytes));
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Writes a file anew, as a whole. @throws Error when the disk is full; the file is the one before then */
export function replaceOwn(file: string, text: string): void {
  const fresh = `${file}.new`;
  rmSync(fresh, { force: true });
  const fd = makeOwn(fresh);
  try {
    const bytes = Buffer.from(text);
    if (writeSync(fd, bytes) < bytes.length) throw new Error(`the disk of ${file} is full`);
  } finally {
    closeSync(fd);
  }
  renameSync(fresh, file);
}
