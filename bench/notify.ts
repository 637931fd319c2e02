// From an event that was accepted to the webhook that reports it, on an idle system and at a steady rate; beside
// prometheus-alertmanager (group_wait 0s) where the machine has it.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startDatabase } from "./support/database.ts";
import { machineFacts } from "./support/machine.ts";
import { modelServer, quantileOf } from "./support/models.ts";
import { progress } from "./support/progress.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const { values: given } = parseArgs({
  options: {
    events: { type: "string", default: "400" },
    seconds: { type: "string", default: "15" },
    one: { type: "string", default: "500" },
    ten: { type: "string", default: "1000" },
  },
});
const events = Number(given.events);
const seconds = Number(given.seconds);

/** When a name arrived, ms; receivers share this process with what sends. */
const arrivedMs = new Map<string, number>();
const ids = new Set<string>();
const waiting = new Map<string, () => void>();

function arrived(name: string, id: string) {
  if (!arrivedMs.has(name)) arrivedMs.set(name, performance.now());
  ids.add(id);
  waiting.get(name)?.();
}

interface Body {
  event?: { name: string };
  alerts?: { labels: { alertname: string } }[];
}

async function receiver(): Promise<string> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const { event, alerts = [] } = JSON.parse(body) as Body;
      if (event !== undefined) arrived(event.name, String(request.headers["webhook-id"]));
      for (const { labels } of alerts) arrived(labels.alertname, labels.alertname);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const receivers = await Promise.all(Array.from({ length: 10 }, receiver));

await using started = await startDatabase();
const database = { ...started, env: { ...started.env, BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" } };
await using server = await modelServer(database);
console.log(`${commandOf("notify", process.argv.slice(2))}\n`);
for (const line of machineFacts(started.version)) console.log(line);

/** A rule whose trigger looks for a text in names, to these receivers. */
async function rule(text: string, urls: readonly string[]) {
  const clause = { contains: { field: "name", value: text } };
  await server.call("notification/triggers", { name: text, type: { event: { query: { clause } } } });
  const destinationNames = urls.map((_, i) => `${text}-${i}`);
  for (const [i, url] of urls.entries()) {
    await server.call("notification/destinations", { name: `${text}-${i}`, type: { webhook: { url } } });
  }
  const names = { triggerNames: [text], destinationNames };
  await server.call("notification/rules", { name: text, enabled: true, message: "{{{event.name}}}", ...names });
}

const eventOf = (name: string, i: number) => ({
  name,
  timestamp: String(Date.now()),
  dimensions: { host: `web-${i % 100}` },
  severity: "SEVERITY_ERROR",
  status: "STATUS_OPEN",
});

/** Sends one at a time; returns the times from the answer, and from the request, to the arrival, ms. */
async function oneByOne(prefix: string, send: (name: string, i: number) => Promise<unknown>) {
  const sinceAnswer: number[] = [];
  const sinceRequest: number[] = [];
  for (let i = 0; i < events; i++) {
    const name = `${prefix} ${i}`;
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(name, resolve);
    const startMs = performance.now();
    const answered = send(name, i).then(() => performance.now());
    await Promise.race([promise, sleep(10_000)]);
    const answerMs = await answered;
    const atMs = arrivedMs.get(name) ?? Number.NaN;
    sinceAnswer.push(Math.max(0, atMs - answerMs));
    sinceRequest.push(atMs - startMs);
    await sleep(5 + Math.random() * 20);
  }
  return { sinceAnswer, sinceRequest };
}

/** Sends events at a rate, in batches each 50 ms, until the time is up; returns how fast deliveries arrived. */
async function steady(prefix: string, perSec: number, each: number) {
  const before = ids.size;
  const startMs = performance.now();
  const total = Math.floor((perSec * seconds) / each);
  const sent: Promise<unknown>[] = [];
  for (let next = 0; next < total; ) {
    const due = Math.min(total, Math.floor((((performance.now() - startMs) / 1000) * perSec) / each));
    if (due > next) {
      const from = next;
      next = Math.min(due, from + 100);
      const batch = Array.from({ length: next - from }, (_, i) => eventOf(`${prefix} ${from + i}`, from + i));
      sent.push(server.call("data-receiver/events", { events: batch }));
    }
    await sleep(50);
  }
  await Promise.all(sent);
  const sentMs = performance.now() - startMs;
  const wanted = total * each;
  while (ids.size - before < wanted && performance.now() - startMs < seconds * 3000) await sleep(10);
  const tookMs = performance.now() - startMs;
  return { perSec: ((ids.size - before) / tookMs) * 1000, arrived: ids.size - before, wanted, sentMs, tookMs };
}

const program = "prometheus-alertmanager";

/** Starts prometheus-alertmanager; undefined where there is none. */
async function alertmanager(url: string) {
  if (spawnSync("which", [program]).status !== 0) return undefined;
  const dir = mkdtempSync(join(tmpdir(), "belfry-bench-am-"));
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  writeFileSync(
    join(dir, "alertmanager.yml"),
    `route: {receiver: bench, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: bench, webhook_configs: [{url: "${url}", send_resolved: false}]}]
`,
  );
  const child: ChildProcess = spawn(
    program,
    [
      `--config.file=${dir}/alertmanager.yml`,
      `--storage.path=${dir}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
      "--cluster.listen-address=",
    ],
    { stdio: "ignore" },
  );
  const address = `http://127.0.0.1:${port}`;
  for (let i = 0; i < 100; i++) {
    if (
      await fetch(`${address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      break;
    await sleep(100);
  }
  return {
    send: (name: string) =>
      fetch(`${address}/api/v2/alerts`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify([{ labels: { alertname: name, severity: "error" } }]),
      }),
    stop() {
      child.kill("SIGTERM");
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

await rule("idle", receivers.slice(0, 1));
await rule("single", receivers.slice(0, 1));
await rule("tenfold", receivers);
await oneByOne("warming idle", (name, i) => server.call("data-receiver/events", { events: [eventOf(name, i)] }));

const rows: string[][] = [];
const ms = (value: number) => value.toFixed(1);
progress("one at a time");
const own = await oneByOne("idle", (name, i) => server.call("data-receiver/events", { events: [eventOf(name, i)] }));
const line = (name: string, times: readonly number[], beside?: readonly number[]) => {
  const [p50, p99] = [quantileOf(times, 0.5), quantileOf(times, 0.99)];
  const ratio = (share: number) => (beside ? (quantileOf(times, share) / quantileOf(beside, share)).toFixed(2) : "–");
  rows.push([name, ms(p50), ms(p99), ratio(0.5), ratio(0.99)]);
};
const other = await alertmanager(receivers[1] as string);
const theirs = other && (await oneByOne("am", other.send));
other?.stop();
line("Belfry: event accepted → webhook received", own.sinceAnswer, theirs?.sinceAnswer);
line("Belfry: event sent → webhook received", own.sinceRequest, theirs?.sinceRequest);
if (theirs) {
  line("Alertmanager: alert accepted → webhook received", theirs.sinceAnswer);
  line("Alertmanager: alert sent → webhook received", theirs.sinceRequest);
} else console.log(`${program} is not installed: no comparison`);
console.log(`\n${events} events, one at a time\n`);
console.log(table(["", "p50 ms", "p99 ms", "p50 to Alertmanager", "p99 to Alertmanager"], rows));

const rates: string[][] = [];
for (const [name, perSec, each] of [
  ["single", Number(given.one), 1],
  ["tenfold", Number(given.ten), 10],
] as const) {
  progress(name);
  const { arrived, wanted, tookMs, ...rest } = await steady(name, perSec, each);
  const receiversText = each === 1 ? "one receiver" : `${each} receivers`;
  rates.push([
    receiversText,
    String(perSec),
    rest.perSec.toFixed(0),
    `${arrived} of ${wanted}`,
    ms(tookMs - rest.sentMs),
  ]);
}
console.log(`\ndeliveries end to end, ${seconds} s\n`);
console.log(table(["", "sent/s", "arrived/s", "arrived", "ms behind at the end"], rates));
process.exit(0);
