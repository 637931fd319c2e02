import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { v1 } from "../support/v1.ts";
import { clear, place } from "./place.ts";
import { freePort } from "./server-process.ts";

type Headers = Record<string, string>;

/** A Prometheus that runs. */
export interface Prometheus {
  address: string;
  output(): string;
}

interface Options {
  scrapeSec: number;
  /** Groups of rules, and where alerts go: more of its configuration. */
  rules?: object;
  alerting?: object;
  args?: readonly string[];
}

/** A Prometheus that scrapes itself, and writes what it scrapes to servers. */
export async function startPrometheus(
  stack: AsyncDisposableStack,
  urls: readonly string[],
  headers: Headers,
  { scrapeSec, rules, alerting, args = [] }: Options,
): Promise<Prometheus> {
  const dir = await place();
  stack.defer(() => clear(dir));
  const address = `127.0.0.1:${await freePort()}`;
  const remoteWrite = (url: string) => ({
    url: `${url}/api/v1/write`,
    authorization: { credentials: headers["service-api-key"] },
    // What waits for a silent database is given up and sent again, meanwhile to a server that has enough to do.
    remote_timeout: "1s",
    // Where it changes their number, it gives up what a shard cannot send within a minute (6,507 samples of an hour on a busy machine).
    queue_config: {
      min_shards: 4,
      max_shards: 4,
      min_backoff: "30ms",
      max_backoff: "1s",
      batch_send_deadline: "500ms",
    },
    metadata_config: { send_interval: "2s" },
  });
  if (rules !== undefined) writeFileSync(join(dir, "rules.yml"), JSON.stringify(rules));
  writeFileSync(
    join(dir, "prometheus.yml"),
    JSON.stringify({
      global: { scrape_interval: `${scrapeSec}s`, evaluation_interval: "1s" },
      ...(rules && { rule_files: ["rules.yml"] }),
      ...(alerting && { alerting }),
      scrape_configs: [{ job_name: "prometheus", static_configs: [{ targets: [address] }] }],
      remote_write: urls.map(remoteWrite),
    }),
  );
  const child = spawn(
    "prometheus",
    ["--config.file=prometheus.yml", "--storage.tsdb.path=data", `--web.listen-address=${address}`, ...args],
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

/** What Prometheus counts of each of its queues. */
async function countedOf(address: string, metric: string): Promise<number[]> {
  const page = await (await fetch(`http://${address}/metrics`)).text();
  const lines = page.split("\n").filter((line) => line.startsWith(`prometheus_remote_storage_${metric}{`));
  return lines.map((line) => Number(line.slice(line.lastIndexOf(" "))));
}

/** The same, summed over them. */
export async function counted(address: string, metric: string): Promise<number> {
  return (await countedOf(address, metric)).reduce((sum, count) => sum + count, 0);
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
      pageSize: 200,
      pageToken,
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
  // A series that began after the time that is compared is listed without values.
  for (const [series, own] of found)
    if (own.size > 0 && !wanted.has(series)) wrong.push(`${series}: was never scraped`);
  return wrong;
}

/** Resolves when it is so, @throws after a minute */
export async function until(isSo: () => Promise<boolean>, what: () => string): Promise<void> {
  const lateMs = performance.now() + 60_000;
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > lateMs) throw new Error(`after a minute ${what()}`);
    await sleep(100);
  }
}

/**
 * Waits until each queue has sent all that was scraped till now: nothing may count as failed or dropped, and each sample that Prometheus
 * answers must be stored at a server, once and with its value. @throws what is not so; returns how many of how many series
 */
export async function compareSamples({ address, output }: Prometheus, url: string, headers: Headers) {
  const lastMs = Date.now();
  await until(
    async () => Math.min(...(await countedOf(address, "queue_highest_sent_timestamp_seconds"))) * 1000 > lastMs + 1000,
    () => `Prometheus is behind: ${output()}`,
  );
  for (const metric of ["samples_failed_total", "samples_dropped_total", "metadata_failed_total"]) {
    const count = await counted(address, metric);
    if (count !== 0) throw new Error(`${metric} is ${count}: ${output()}`);
  }
  const wanted = await scraped(address, lastMs);
  // What a queue has sent last is that of the first of its shards: another one may still be on its way.
  let wrong: string[] = [];
  await until(
    async () => {
      wrong = differences(wanted, await stored(url, headers, { instance: address, job: "prometheus" }, lastMs));
      return wrong.length === 0;
    },
    () => `there are ${wrong.length} differences\n${wrong.slice(0, 20).join("\n")}`,
  );
  const samples = [...wanted.values()].reduce((sum, { size }) => sum + size, 0);
  if (samples === 0) throw new Error("Prometheus has scraped nothing");
  return { samples, series: wanted.size };
}
