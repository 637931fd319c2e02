import { setTimeout as sleep } from "node:timers/promises";
import { servingOf } from "../support/serving-processes.ts";
import type { Random } from "./random.ts";
import type { Act } from "./rounds.ts";
import type { ServerProcess } from "./server-process.ts";

const backMsMax = 60_000;
/** A server ends at the fifth death within ten minutes: here there are three at most. */
const deathsMax = 3;
const deathsMs = 600_000;

/** kill -9 of one of the processes that serve. Resolves when as many serve as before. */
export async function killServing({ pid = -1 }: ServerProcess, processes: number, { pick }: Random): Promise<void> {
  process.kill(pick(servingOf(pid)), "SIGKILL");
  for (let waited = 0; waited < backMsMax && servingOf(pid).length < processes; waited += 20) await sleep(20);
}

/** What goes wrong with one process of a server of several, while its others go on. */
export function actsOfServing(server: ServerProcess, processes: number, choose: Random): Act[] {
  const diedMs: number[] = [];
  return [
    {
      name: "kill -9 of a serving process",
      async run() {
        if (diedMs.filter((ms) => performance.now() - ms < deathsMs).length >= deathsMax) return;
        diedMs.push(performance.now());
        await killServing(server, processes, choose);
      },
    },
    {
      name: "a paused serving process",
      async run() {
        const pid = choose.pick(servingOf(server.pid ?? -1));
        process.kill(pid, "SIGSTOP");
        await sleep(choose.int(300, 6000));
        process.kill(pid, "SIGCONT");
      },
    },
  ];
}
