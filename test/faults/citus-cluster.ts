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

/** The file in which a node's PostgreSQL writes its first process. */
async function pidFileOf(url: string): Promise<string> {
  const { sql, close } = connectOnce(url, "faults");
  try {
    const [row] = await sql<[{ dir: string }]>`select current_setting('data_directory') as dir`;
    return join(row.dir, "postmaster.pid");
  } finally {
    await close();
  }
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
  const first = () => Number(readFileSync(pick(pidFiles), "utf8").split("\n", 1)[0]);
  const nemesis: Nemesis = {
    async kill() {
      await killProcesses(first());
      const [program, ...parameters] = start as [string, ...string[]];
      const [code] = await once(spawn(program, parameters, { stdio: "ignore" }), "exit");
      if (code !== 0) throw new Error(`the cluster was not started again: exit code ${code}`);
    },
    pause: (ms) => pauseProcesses(first(), ms),
  };
  return { dataDir: dir, url, nemesis };
}
