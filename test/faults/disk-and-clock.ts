import { statfsSync } from "node:fs";
import { appendFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "./random.ts";
import type { Act } from "./rounds.ts";
import type { ServerProcess } from "./server-process.ts";

const MiB = 1024 * 1024;
const hourMs = 3_600_000;
/** A disk that is smaller is filled in one of the acts: FAULTS_DIR, such as a tmpfs of 2 GiB. */
const smallDiskBytes = 8 * 1024 * MiB;

/** Fills the disk of a directory, for a while; undefined where it is a large one. */
export function fullDisk(dataDir: string, { int }: Random): Act | undefined {
  const { blocks, bsize } = statfsSync(dataDir);
  if (blocks * bsize > smallDiskBytes) return undefined;
  return {
    name: "a full disk",
    async run() {
      const file = join(dataDir, "..", "filler");
      try {
        for (const size of [64 * MiB, MiB, 4096]) {
          try {
            const piece = Buffer.alloc(size);
            for (;;) await appendFile(file, piece);
          } catch {
            // Full for this size.
          }
        }
        await sleep(int(500, 4000));
      } finally {
        await rm(file, { force: true });
      }
    },
  };
}

export function clockStep(servers: readonly ServerProcess[], { pick, int }: Random): Act {
  return {
    name: "a clock that steps",
    async run() {
      const server = pick(servers);
      await server.arm({ clockShiftMs: pick([-1, 1]) * int(60_000, 2 * hourMs) });
      await sleep(int(500, 3000));
      await server.arm({});
    },
  };
}
