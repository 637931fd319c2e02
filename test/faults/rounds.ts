import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/db/connect.ts";
import { within } from "./facts.ts";
import type { Ledger } from "./ledger.ts";
import type { Load } from "./load.ts";
import type { ServerProcess } from "./server-process.ts";

/** One thing that goes wrong. Resolves when it is mended, so that service must come back by itself. */
export interface Act {
  name: string;
  run(): Promise<void>;
}

interface Rounds {
  seed: number;
  /** Chooses what goes wrong in a round, and how long after its begin, ms. */
  plan(round: number): { act: Act; afterMs: number };
  /** Rounds to run, and the time (performance.now()) after which no further one begins. */
  until: { rounds: number; endMs?: number };
  load: Load;
  ledger: Ledger;
  servers: readonly ServerProcess[];
  db: Db;
  tenantId: string;
  say(line: string): void;
}

const recoveryMsMax = 60_000;
/** A round that takes longer hangs. */
const roundMsMax = 300_000;

/** Under the fault nothing is asked for but safety; after it, that every client gets on. */
async function gotOn(load: Load): Promise<void> {
  const before = [...load.answers];
  const endMs = performance.now() + recoveryMsMax;
  while (load.answers.some((count, client) => count < (before[client] ?? 0) + 2)) {
    if (performance.now() > endMs) {
      const got = load.answers.map((count, client) => count - (before[client] ?? 0)).join(", ");
      const heard = [...load.refusals].map(([what, count]) => `${count} × ${what}`).join("\n");
      throw new Error(
        `no service ${recoveryMsMax} ms after the fault was mended; answers: ${got}; refusals:\n${heard}`,
      );
    }
    await sleep(10);
  }
}

/**
 * Round after round: clients send, something goes wrong, it is mended, every client gets on; then all stand still and
 * the ledger is compared. @throws with the seed and the round when anything is not as it must be.
 */
export async function runRounds(rounds: Rounds): Promise<number> {
  const { seed, plan, until, load, ledger, servers, db, tenantId, say } = rounds;
  for (let round = 1; ; round++) {
    if (round > until.rounds || performance.now() > (until.endMs ?? Infinity)) return round - 1;
    const { act, afterMs } = plan(round);
    const startMs = performance.now();
    let wrong: string[];
    let doing = "";
    let backMs = 0;
    const turn = async () => {
      doing = "the fault";
      load.go();
      await sleep(afterMs);
      await act.run();
      doing = "service";
      const mendedMs = performance.now();
      await gotOn(load);
      backMs = Math.round(performance.now() - mendedMs);
      doing = "the clients' end";
      await load.stop();
      doing = "the comparison";
      return await ledger.compare(db, tenantId);
    };
    try {
      wrong = await within(roundMsMax, () => `a round, at ${doing},`, turn());
      wrong.push(...servers.flatMap(({ complaints }) => complaints));
      const { acknowledged } = ledger.counts;
      say(
        `round ${round}: ${act.name} after ${afterMs} ms, ${Math.round(performance.now() - startMs)} ms, ` +
          `service after ${backMs} ms; ${acknowledged} items acknowledged`,
      );
    } catch (error) {
      wrong = [(error as Error).stack as string, ...servers.flatMap(({ complaints }) => complaints)];
    }
    if (wrong.length > 0) {
      throw new Error(`SEED=${seed}, round ${round}, ${act.name} after ${afterMs} ms:\n${wrong.join("\n")}`);
    }
  }
}
