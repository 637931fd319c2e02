import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { installed } from "../integrations/programs.ts";
import { v1 } from "../support/v1.ts";
import { clear, clusterPlace, place } from "./place.ts";
import { pausePostgres } from "./postgres-process.ts";
import { random } from "./random.ts";
import { firstTenant, type Play } from "./scenes.ts";
import { freePort, serverProcess } from "./server-process.ts";

type Headers = Record<string, string>;

/** A Prometheus that scrapes itself each second, and writes what it scrapes to a server. */
async function startPrometheus(stack: AsyncDisposableStack, url: string, headers: Headers) {
  const dir = await place();
  stack.defer(() => clear(dir));
  const address = `127.0.0.1:${await freePort()}`;
  const remoteWrite = {
    url: `${url}/api/v1/write`,
    authorization: { credentials: headers["service-api-key"] },
    // What waits for a silent database is given up and sent again, meanwhile to a server that has enough to do.
    remote_timeout: "1s",
    queue_config: { min_shards: 4, min_backoff: "30ms", max_backoff: "1s", batch_send_deadline: "500ms" },
    metadata_config: { send_interval: "2s" },
  };
  writeFileSync(
    join(dir, "prometheus.yml"),
    JSON.stringify({
      global: { scrape_interval: "1s" },
      scrape_configs: [{ job_name: "prometheus", static_configs: [{ targets: [address] }] }],
      remote_write: [remoteWrite],
    }),
  );
  const child = spawn(
    "prometheus",
    ["--config.file=prometheus.yml", "--storage.tsdb.path=data", `--web.listen-address=${address}`],
    { cwd: dir, stdio: ["ignore", "ignore", "pipe"] },
  );
  let output = "";
  child.stderr.on("data", (text) => (output += text));
  const ended = once(child, "exit");
  stack.defer(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { address, output: () => output };
}

/** What Prometheus counts of itself, summed over its queues. */
async function counted(address: string, metric: string): Promise<number> {
  const page = await (await fetch(`http://${address}/metrics`)).text();
  const lines = page.split("\n").filter((line) => line.startsWith(`prometheus_remote_storage_${metric}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** Values by their times, by the series; NaN is no value. */
type Samples = Map<string, Map<number, number>>;
const keyOf = (labels: Headers) => JSON.stringify(Object.entries(labels).sort());

/** Every sample that Prometheus has up to a time, as it answers a query. */
async function scraped(address: string, untilMs: number): Promise<Samples> {
  const query = new URLSearchParams({ query: '{job="prometheus"}[1d]', time: String(untilMs / 1000) });
  const answer = await (await fetch(`http://${address}/api/v1/query?${query}`)).json();
  const { result } = (answer as { data: { result: { metric: Headers; values: [number, string][] }[] } }).data;
  return new Map(
    result.map(({ metric, values }) => {
      const numbers = values.map(([sec, text]) => [Math.round(sec * 1000), Number(text)] as const);
      return [keyOf(metric), new Map(numbers.filter(([, value]) => !Number.isNaN(value)))];
    }),
  );
}

/** The same as it is stored, read over the API. */
async function stored(url: string, headers: Headers, entity: Headers, untilMs: number): Promise<Samples> {
  const call = v1(url, headers);
  const all: Samples = new Map();
  for (let pageToken = ""; ; ) {
    const { status, body } = await call("POST", "/v1/metrics:search", {
      entityClause: { filter: { field: "job", operation: "OP_EQUALS", value: "prometheus" } },
      timeRange: { start: new Date(untilMs - 82_800_000).toISOString(), end: new Date(untilMs + 1).toISOString() },
      downsample: { aggregator: "NONE", period: "1h" },
      ...{ pageSize: 200, pageToken },
    });
    if (status !== 200) throw new Error(`the search was answered ${status}: ${JSON.stringify(body)}`);
    for (const { name, labels = {}, timestamps, values } of body.metrics ?? []) {
      const key = keyOf({ ...labels, ...entity, __name__: name });
      const times = (timestamps as string[]).map(Number);
      all.set(key, new Map(times.map((timeMs, i) => [timeMs, values[i] as number])));
    }
    pageToken = body.nextPageToken ?? "";
    if (pageToken === "") return all;
  }
}

/** What is not the same in both, a line each. */
function differences(wanted: Samples, found: Samples): string[] {
  const wrong: string[] = [];
  for (const [series, samples] of wanted) {
    const own = found.get(series) ?? new Map<number, number>();
    for (const [timeMs, value] of samples)
      if (own.get(timeMs) !== value) wrong.push(`${series} at ${timeMs}: ${own.get(timeMs)}, Prometheus has ${value}`);
    for (const timeMs of own.keys()) if (!samples.has(timeMs)) wrong.push(`${series} at ${timeMs}: was never scraped`);
  }
  for (const series of found.keys()) if (!wanted.has(series)) wrong.push(`${series}: was never scraped`);
  return wrong;
}

/** More than can be stored: clients that send while PostgreSQL stands still, until Prometheus has been refused, too. */
async function overload(url: string, headers: Headers, dataDir: string, refused: () => number, ms: number) {
  const before = refused();
  const call = v1(url, headers);
  const metrics = [{ metric: "m", timestamp: String(Date.now()), value: 1, dimensions: { source: "another" } }];
  let going = true;
  const clients = Array.from({ length: 8 }, async () => {
    while (going) {
      await call("POST", "/v1/data-receiver/metrics", { metrics }).catch(() => undefined);
      await sleep(100);
    }
  });
  for (let i = 0; i < 5 && refused() === before; i++) {
    await pausePostgres(dataDir, ms);
    await sleep(300);
  }
  going = false;
  await Promise.all(clients);
  if (refused() === before) throw new Error("Prometheus was never refused");
}

/** Resolves when it is so, @throws after a minute */
async function until(isSo: () => Promise<boolean>, what: string): Promise<void> {
  const lateMs = performance.now() + 60_000;
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > lateMs) throw new Error(`after a minute ${what}`);
    await sleep(100);
  }
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
  const { address, output } = await startPrometheus(stack, server.url, headers);
  await until(async () => (await counted(address, "samples_total")) > 0, `nothing was sent: ${output()}`);
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
    } else await overload(server.url, headers, dataDir, refused, 2500 + acrossMs);
    await until(async () => (await counted(address, "samples_retried_total")) > before, "nothing was sent again");
    say(`${killed ? "kill -9 of the server" : "overload"}: ${acrossMs} ms, sent again; ${refused()} times 503 so far`);
  }
  const lastMs = Date.now();
  await until(
    async () => (await counted(address, "queue_highest_sent_timestamp_seconds")) * 1000 > lastMs + 1000,
    `Prometheus is behind: ${output()}`,
  );
  for (const metric of ["samples_failed_total", "samples_dropped_total", "metadata_failed_total"]) {
    const count = await counted(address, metric);
    if (count !== 0) throw new Error(`${metric} is ${count}: ${output()}`);
  }
  const wanted = await scraped(address, lastMs);
  const wrong = differences(
    wanted,
    await stored(server.url, headers, { instance: address, job: "prometheus" }, lastMs),
  );
  const count = [...wanted.values()].reduce((sum, { size }) => sum + size, 0);
  say(`${count} samples of ${wanted.size} series`);
  if (count === 0) throw new Error("Prometheus has scraped nothing");
  if (wrong.length > 0) throw new Error(`${wrong.length} differences\n${wrong.slice(0, 20).join("\n")}`);
  if (server.complaints.length > 0) throw new Error(server.complaints.join("\n"));
  return played;
}
