import { rmSync } from "node:fs";
import { type FileHandle, link, lstat, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { StartError } from "../db/start-error.ts";
import { alive } from "../embedded/postmaster.ts";

/** A file that gets its name only once it is whole. */
export interface PartFile {
  readonly handle: FileHandle;
  /** Gives it its name, on the disk. @throws StartError when the name is taken meanwhile */
  publish(): Promise<void>;
  /** Closes it, and removes what has no name yet. May be called at any time. */
  discard(): Promise<void>;
}

/** A part file of a process that is gone is removed when nothing was written to it for this long: the process may be another machine's. */
const abandonedMs = 600_000;
/** What file systems without hard links report. */
const noLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EACCES"]);

const taken = (path: string) => new StartError(`${path} is there; an export does not write over it`);
const exists = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  );

async function removeAbandoned(path: string): Promise<void> {
  const start = `${basename(path)}.`;
  for (const name of await readdir(dirname(path)).catch(() => [])) {
    const pid = name.startsWith(start) && /^(\d+)\.part$/.exec(name.slice(start.length))?.[1];
    if (!pid || alive(Number(pid))) continue;
    const file = join(dirname(path), name);
    const found = await stat(file).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > abandonedMs) await rm(file, { force: true });
  }
}

async function sync(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Makes `<path>.<process id>.part`, of mode 0600, for a file that is not there yet. It goes with the process, unless that is killed; what a
 * killed one has left keeps no one from the name.
 * @throws StartError when the file is there, or none can be made
 */
export async function openPart(path: string): Promise<PartFile> {
  if (await exists(path)) throw taken(path);
  await removeAbandoned(path);
  const part = `${path}.${process.pid}.part`;
  const handle = await open(part, "wx", 0o600).catch((error) => {
    throw new StartError(`cannot write ${path}: ${error.message}`);
  });
  const removeAtExit = () => rmSync(part, { force: true });
  process.once("exit", removeAtExit);
  let published = false;
  return {
    handle,
    async publish() {
      try {
        // Unlike a renamed file, a link never replaces another one.
        await link(part, path);
      } catch (error) {
        const { code = "" } = error as NodeJS.ErrnoException;
        if (code === "EEXIST" || (noLinks.has(code) && (await exists(path)))) throw taken(path);
        if (!noLinks.has(code)) throw error;
        await rename(part, path);
      }
      published = true;
      await rm(part, { force: true });
      await sync(dirname(path));
    },
    async discard() {
      await handle.close().catch(() => undefined); // the stream may have closed it
      if (!published) await rm(part, { force: true });
      process.removeListener("exit", removeAtExit);
    },
  };
}
