import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { migrate } from "../../src/db/migrate.ts";
import { startEmbedded } from "../../src/embedded/embedded.ts";

const setting = "BELFRY_TEST_CLUSTER";
const quiet = { info() {}, warn: console.warn, error: console.error };

/** Makes a data directory with a stopped, migrated PostgreSQL, from which `copyCluster` copies in this process and those that it starts. */
export async function makeCluster(dir: string): Promise<void> {
  const { url, stop } = await startEmbedded({ dataDir: dir, log: quiet, durable: false });
  await migrate(url);
  await stop("fast");
  // A copy with a lock that no one holds would look like what a killed run has left.
  rmSync(join(dir, "lock"));
  process.env[setting] = dir;
}

/**
 * Fills an empty data directory as a server has it before its first start, when PostgreSQL is made and migrated: initdb takes
 * seconds. Where there is nothing to copy from, the directory stays empty, and the server fills it itself.
 */
export function copyCluster(dir: string): void {
  const from = process.env[setting];
  // Keeps the account to which PostgreSQL's files belong.
  if (from !== undefined) execFileSync("cp", ["-a", `${from}/.`, dir]);
}
