import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { dataDirectoryOf } from "../../src/embedded/data-directory.ts";
import { alive, readPidFile } from "../../src/embedded/postmaster.ts";

/** The first process of the PostgreSQL in a data directory. */
export function postmaster(dataDir: string): number | undefined {
  return readPidFile(dataDirectoryOf(dataDir).data)?.pid;
}

/** The processes of a PostgreSQL behind its first one, with their names. */
function children(pid: number): { pid: number; title: string }[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      // After the program's name, which may hold anything: state and parent.
      const parent = Number(readFileSync(`/proc/${name}/stat`, "utf8").split(") ").pop()?.split(" ")[1]);
      return parent === pid ? [{ pid: Number(name), title: readFileSync(`/proc/${name}/cmdline`, "utf8") }] : [];
    } catch {
      return [];
    }
  });
}

function signal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name);
  } catch {
    // Gone meanwhile.
  }
}

/** kill -9 of PostgreSQL's first process; the others see that it is gone. */
export async function killPostgres(dataDir: string): Promise<void> {
  const pid = postmaster(dataDir);
  if (pid === undefined) return;
  signal(pid, "SIGKILL");
  while (alive(pid)) await sleep(5);
}

/** kill -9 of one process that serves a connection of ours: PostgreSQL ends all the others and recovers. */
export function killBackend(dataDir: string, pick: <T>(list: readonly T[]) => T): void {
  const pid = postmaster(dataDir);
  if (pid === undefined) return;
  const backends = children(pid).filter(({ title }) => title.includes("belfry belfry"));
  if (backends.length > 0) signal(pick(backends).pid, "SIGKILL");
}

/** Stops every process of a PostgreSQL for a while: it says nothing, and refuses nothing. */
export async function pausePostgres(dataDir: string, ms: number): Promise<void> {
  const pid = postmaster(dataDir);
  if (pid !== undefined) await pauseProcesses(pid, ms);
}

/** What a scene does to its database. */
export interface Nemesis {
  /** kill -9. What ends is started again, by whom it may be. */
  kill(): Promise<void>;
  /** It stands still for a while. */
  pause(ms: number): Promise<void>;
}

/** The same for the PostgreSQL in a data directory, which its supervisor starts again. */
export const nemesisOf = (dataDir: string): Nemesis => ({
  kill: () => killPostgres(dataDir),
  pause: (ms) => pausePostgres(dataDir, ms),
});

/** kill -9 of a PostgreSQL whose first process this is, and of all its others. */
export async function killProcesses(pid: number): Promise<void> {
  const all = [pid, ...children(pid).map((child) => child.pid)];
  for (const each of all) signal(each, "SIGKILL");
  for (const each of all) while (alive(each)) await sleep(5);
}

/** Stops a PostgreSQL whose first process this is, with all its others, for a while. */
export async function pauseProcesses(pid: number, ms: number): Promise<void> {
  const all = [pid, ...children(pid).map((child) => child.pid)];
  for (const each of all) signal(each, "SIGSTOP");
  await sleep(ms);
  for (const each of all) signal(each, "SIGCONT");
}
