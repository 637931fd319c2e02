import { setTimeout as sleep } from "node:timers/promises";
import { installed } from "../integrations/programs.ts";
import { v1 } from "../support/v1.ts";
import { clear, clusterPlace } from "./place.ts";
import { pausePostgres } from "./postgres-process.ts";
import { compareSamples, counted, startPrometheus, until } from "./prometheus-program.ts";
import { random } from "./random.ts";
import { firstTenant, type Play } from "./scenes.ts";
import { serverProcess } from "./server-process.ts";

type Headers = Record<string, string>;

/** More than can be stored: clients that send while PostgreSQL stands still, until one of them has been refused. */
async function overload(url: string, headers: Headers, dataDir: string, ms: number) {
  let refused = 0;
  const call = v1(url, headers);
  const metrics = [{ metric: "m", timestamp: String(Date.now()), value: 1, dimensions: { source: "another" } }];
  let going = true;
  const clients = Array.from({ length: 8 }, async () => {
    while (going) {
      const answer = await call("POST", "/v1/data-receiver/metrics", { metrics }).catch(() => undefined);
      if (answer?.status === 429) refused += 1;
      await sleep(100);
    }
  });
  // However slow the clients are, at some time one of them waits for longer than it may.
  while (refused === 0) {
    await pausePostgres(dataDir, ms);
    await sleep(300);
  }
  going = false;
  await Promise.all(clients);
}

/**
 * Debian's Prometheus writes what it scrapes of itself to a server that is killed, and that is overloaded, in turns. It
 * must count nothing as failed or dropped, and every sample that it answers must be stored, once and with its value.
 */
export async function playPrometheus({ seed, until: { rounds, endMs = Infinity }, say }: Play): Promise<number> {
  if (!installed("prometheus")) return 0;
  await using stack = new AsyncDisposableStack();
  const { int } = random(seed);
  const dataDir = await clusterPlace();
  stack.defer(() => clear(dataDir));
  const server = await serverProcess({ BELFRY_DATA_DIR: dataDir, BELFRY_INGEST_WAIT: "500ms" });
  stack.defer(() => server.stop());
  await server.start();
  const { headers } = await firstTenant(dataDir);
  const prometheus = await startPrometheus(stack, [server.url], headers, { scrapeSec: 1 });
  const { address, output } = prometheus;
  await until(
    async () => (await counted(address, "samples_total")) > 0,
    () => `nothing was sent: ${output()}`,
  );
  /** How often it was refused; it gives up itself where an answer takes longer than a second. */
  const refused = () => output().split("503 Service Unavailable").length - 1;
  let played = 0;
  for (; played < rounds && performance.now() < endMs; played++) {
    const [killed, acrossMs] = [played % 2 === 0, int(500, 2500)];
    await sleep(int(500, 2000));
    const before = await counted(address, "samples_retried_total");
    if (killed) {
      await server.kill();
      await sleep(acrossMs);
      await server.start();
    } else await overload(server.url, headers, dataDir, 2500 + acrossMs);
    await until(
      async () => (await counted(address, "samples_retried_total")) > before,
      () => "nothing was sent again",
    );
    say(`${killed ? "kill -9 of the server" : "overload"}: ${acrossMs} ms, sent again; ${refused()} times 503 so far`);
  }
  const { samples, series } = await compareSamples(prometheus, server.url, headers);
  say(`${samples} samples of ${series} series`);
  if (server.complaints.length > 0) throw new Error(server.complaints.join("\n"));
  return played;
}
