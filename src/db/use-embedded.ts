import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { clientOptions } from "./connect.ts";
import { type EmbeddedOptions, startEmbedded } from "./embedded.ts";

/**
 * Runs `work` on the embedded database of a data directory: on the one that a server is running, else on one that is
 * started for this and stopped again. @throws StartError as startEmbedded does
 */
export async function useEmbedded<T>(options: EmbeddedOptions, work: (url: string) => Promise<T>): Promise<T> {
  const running = await runningUrl(options.dataDir);
  if (running !== undefined) return await work(running);
  const embedded = await startEmbedded(options);
  try {
    return await work(embedded.url);
  } finally {
    await embedded.stop();
  }
}

async function runningUrl(dataDir: string): Promise<string | undefined> {
  const file = join(dataDir, "database.url");
  if (!existsSync(file)) return undefined;
  const url = readFileSync(file, "utf8").trim();
  const sql = postgres(url, { ...clientOptions, max: 1, connect_timeout: 3 } as never);
  try {
    await sql`select 1`;
    return url;
  } catch {
    return undefined;
  } finally {
    await sql.end({ timeout: 1 });
  }
}
