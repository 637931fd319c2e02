import { setTimeout as sleep } from "node:timers/promises";
import { StartError } from "../start-error.ts";
import { lockData } from "./data-lock.ts";
import { type EmbeddedOptions, startEmbedded } from "./embedded.ts";
import { makeDataDir, placeOf, readUrl } from "./place.ts";
import { answers } from "./roles.ts";

/**
 * Runs `work` on the embedded database of a data directory: on the one that a server is running (or just starting),
 * else on one that is started for this and stopped again. @throws StartError as startEmbedded does
 */
export async function useEmbedded<T>(options: EmbeddedOptions, work: (url: string) => Promise<T>): Promise<T> {
  makeDataDir(options.dataDir);
  for (let attempt = 0; attempt < 300; attempt++) {
    const lock = lockData(options.dataDir);
    if (lock !== undefined) {
      lock.release();
      await using embedded = await startEmbedded(options);
      return await work(embedded.url);
    }
    const url = readUrl(placeOf(options.dataDir).urlFile);
    if (url !== undefined && (await answers(url.href))) return await work(url.href);
    await sleep(100);
  }
  throw new StartError(`a server is using ${options.dataDir}, but its database does not answer`);
}
