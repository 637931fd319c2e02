// A process that sends bad requests of all kinds: takes an AttackOrder as message, answers when all are sent.
import { setTimeout as sleep } from "node:timers/promises";
import { type Attack, attacks, misshapen } from "../../test/faults/attacks.ts";
import { random } from "../../test/faults/random.ts";

/** How many bad requests to send, and from how many connections at once. */
export interface AttackOrder {
  url: string;
  key: string;
  requests: number;
  together: number;
  perSec: number;
  /** Connections begin one after the other in this time. */
  rampMs: number;
  seed: number;
}

/** What was sent. */
export interface AttackReport {
  requests: number;
  connections: number;
  byKind: Record<string, number>;
  /** Answers that were no errors in the server's form. */
  misshapen: string[];
}

async function run({ url, key, requests, together, perSec, rampMs, seed }: AttackOrder): Promise<AttackReport> {
  const { pick, chance } = random(seed);
  const report: AttackReport = { requests: 0, connections: 0, byKind: {}, misshapen: [] };
  // One that fits is a large message, which takes its time like any other of its size.
  const names = Object.keys(attacks).filter((name) => !name.endsWith("that fits"));
  async function attacker(_: unknown, at: number) {
    // No attacker begins a flood with all of its connections in the same millisecond.
    await sleep((rampMs * at) / together);
    const startMs = performance.now();
    let sent = 0;
    while (report.requests < requests) {
      // Each keeps to its own part of the rate: together they would begin all at once, and pause all at once.
      const aheadMs = (sent * 1000 * together) / perSec - (performance.now() - startMs);
      if (aheadMs > 0) {
        await sleep(Math.min(aheadMs, 100));
        continue;
      }
      const name = pick(names);
      // Each of these takes the server as long as a hundred others.
      if (name.includes("bomb") && chance(0.9)) continue;
      const damage = await (attacks[name] as Attack)({ url, key });
      sent += damage.requests;
      report.requests += damage.requests;
      report.connections += 1;
      report.byKind[name] = (report.byKind[name] ?? 0) + damage.requests;
      report.misshapen.push(...misshapen(damage.answers).slice(0, 5));
    }
  }
  await Promise.all(Array.from({ length: together }, attacker));
  return report;
}

process.on("message", async (order: AttackOrder) => {
  process.send?.(await run(order));
});
process.on("disconnect", () => process.exit(0));
