import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connectOnce } from "../../src/db/connect.ts";
import { distribute } from "../../src/db/distribute.ts";
import { migrate } from "../../src/db/migrate.ts";
import { startCluster } from "../support/citus.ts";
import { clear, place } from "./place.ts";
import { killProcesses, type Nemesis, pauseProcesses } from "./postgres-process.ts";
import type { Random } from "./random.ts";

/** Few parts: a node of a scene recovers each of them. */
const shards = 8;

/** The file in which the PostgreSQL of a node writes its first process. */
export async function pidFileOf(url: string): Promise<string> {
  const { sql, close } = connectOnce(url, "faults");
  try {
    const [row] = await sql<[{ dir: string }]>`select current_setting('data_directory') as dir`;
    return join(row.dir, "postmaster.pid");
  } finally {
    await close();
  }
}

/** The first process of a node, by its file. */
export const firstProcessIn = (pidFile: string) => Number(readFileSync(pidFile, "utf8").split("\n", 1)[0]);

/** Starts the nodes of a cluster that do not run. */
export async function startNodes([program, ...parameters]: string[]): Promise<void> {
  const [code] = await once(spawn(program as string, parameters, { stdio: "ignore" }), "exit");
  if (code !== 0) throw new Error(`the nodes were not started: exit code ${code}`);
}

/** A Citus cluster of a scene's own, migrated and distributed. What is done to it is done to the coordinator, or to one of its workers. */
export async function ownCitus(stack: AsyncDisposableStack, given: string, { pick }: Random) {
  const dir = await place();
  stack.defer(() => clear(dir));
  const { urls, start, stop } = await startCluster(given, dir);
  stack.defer(stop);
  const [url] = urls as [string];
  await migrate(url);
  await distribute(url, shards);
  const pidFiles = await Promise.all(urls.map(pidFileOf));
  const first = () => firstProcessIn(pick(pidFiles));
  const nemesis: Nemesis = {
    async kill() {
      await killProcesses(first());
      await startNodes(start);
    },
    pause: (ms) => pauseProcesses(first(), ms),
  };
  return { dataDir: dir, url, nemesis };
}
