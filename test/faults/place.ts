import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeDatabase } from "../../bench/support/leftovers.ts";
import { alive } from "../../src/embedded/postmaster.ts";
import { copyCluster } from "../support/cluster.ts";
import { killPostgres } from "./postgres-process.ts";

// A disk of one's own, to be filled; else the usual place.
const root = process.env.FAULTS_DIR ?? tmpdir();
// Not the prefix of test databases: what looks abandoned there is removed by the next run, and here servers die on purpose.
const prefix = "belfry-faults-";

/**
 * Ends the PostgreSQL of each data directory that this process has made, and removes them, without a turn of the loop: for a process that a
 * signal ends. What dies may write once more, so the last look is one that finds nothing.
 */
export function clearPlaces(): void {
  for (let wasClear = false, isClear = false; !(wasClear && isClear); Atomics.wait(pause, 0, 0, 200)) {
    wasClear = isClear;
    const left = readdirSync(root).filter((name) => name.startsWith(`${prefix}${process.pid}-`));
    for (const name of left) removeDatabase(join(root, name));
    isClear = left.length === 0;
  }
}

const pause = new Int32Array(new SharedArrayBuffer(4));

/** Whether this account may remove a directory of a run that has died: those of other accounts stay. */
function removable(dir: string): boolean {
  const account = process.getuid?.() ?? 0;
  return account === 0 || statSync(dir, { throwIfNoEntry: false })?.uid === account;
}

/** A new data directory, which a later run of the same account removes if this one is killed. The unprivileged account of PostgreSQL may enter it. */
export async function place(): Promise<string> {
  for (const name of readdirSync(root)) {
    const pid = Number(name.startsWith(prefix) ? name.slice(prefix.length).split("-", 1)[0] : 0);
    if (pid > 0 && !alive(pid) && removable(join(root, name))) await clear(join(root, name));
  }
  const dir = mkdtempSync(join(root, `${prefix}${process.pid}-`));
  chmodSync(dir, 0o711);
  return dir;
}

/** Such a directory with a migrated PostgreSQL in it that no server has started yet; an empty one outside of the tests. */
export async function clusterPlace(): Promise<string> {
  const dir = await place();
  copyCluster(dir);
  return dir;
}

/** Ends the PostgreSQL of a data directory, if there is one, and removes the directory. */
export async function clear(dir: string): Promise<void> {
  if (existsSync(dir)) await killPostgres(dir);
  rmSync(dir, { recursive: true, force: true });
}
