// A process that sends requests and measures the answers: takes a Load as message, answers with its Outcome.
import { setTimeout as sleep } from "node:timers/promises";
import type { Connection } from "./connection.ts";
import { openHttp1 } from "./http1.ts";
import { openHttp2 } from "./http2.ts";
import { type Load, type Outcome, quantile } from "./load.ts";

async function run({ port, request, connections: count, streams, leadInMs, countMs }: Load): Promise<Outcome> {
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  let counting = false;
  let timesMs = new Float64Array(65_536);
  let counted = 0;
  let all = 0;
  let bad = 0;

  function answered(startMs: number, good: boolean): void {
    all += 1;
    if (!good) bad += 1;
    if (!counting || !good) return;
    if (counted === timesMs.length) {
      const more = new Float64Array(counted * 2);
      more.set(timesMs);
      timesMs = more;
    }
    timesMs[counted] = performance.now() - startMs;
    counted += 1;
  }

  const open = request.http === 1 ? openHttp1 : openHttp2;
  const opening = Array.from({ length: count }, () =>
    open({ port, request, streams, answered, failed: broken.reject }),
  );
  const connections: Connection[] = await Promise.all(opening);
  for (const connection of connections) connection.start();

  async function measure(): Promise<Outcome> {
    await sleep(leadInMs);
    const cpu = process.cpuUsage();
    const startMs = performance.now();
    counting = true;
    await sleep(countMs);
    counting = false;
    const elapsedMs = performance.now() - startMs;
    const { user, system } = process.cpuUsage(cpu);
    await Promise.all(connections.map((connection) => connection.stop()));
    const sorted = timesMs.subarray(0, counted).sort();
    return {
      perSec: (counted / elapsedMs) * 1000,
      p50Ms: quantile(sorted, 0.5),
      p99Ms: quantile(sorted, 0.99),
      answered: all,
      bad,
      busy: (user + system) / 1000 / elapsedMs,
    };
  }
  return await Promise.race([measure(), broken.promise]);
}

process.on("message", async (load: Load) => {
  try {
    process.send?.({ outcome: await run(load) });
  } catch (error) {
    process.send?.({ error: (error as Error).message });
  }
});
process.on("disconnect", () => process.exit(0));
