// 1,000 clients that each send one event a second.
import { setTimeout as sleep } from "node:timers/promises";
import type { SteadyLoad, SteadyOutcome } from "./load/steady.ts";
import { startChild } from "./support/child.ts";
import { median } from "./support/compare.ts";
import { putEvents } from "./support/events.ts";
import { counted, startIngest } from "./support/ingest.ts";
import { progress } from "./support/progress.ts";
import { table } from "./support/table.ts";

const hosts = 10_000;
const clients = 1000;

await using ingest = await startIngest(
  "clients",
  [
    "1,000 clients over /v1, each on a connection of its own, that send one event a second, a new instance of one of 10,000",
    "known events each time, whether earlier ones were answered or not; times count from when they were due. First 256 clients",
    "that send the next as soon as one is answered: the top rate. Where 1,000 a second are more than two thirds of it, the clients",
    "send two thirds of it together, then 1,000. Server, generator and PostgreSQL share all processors.",
  ],
  { rounds: 3, seconds: 15 },
);
const { key } = ingest.database;
await ingest.prepare(putEvents(1000, hosts / 1000, key), hosts / 1000, { as: "events", count: 1000 });
const { rest } = putEvents(1, hosts, key);
const tops: number[] = [];
for (let i = 0; i < ingest.settings.rounds; i++) {
  tops.push((await ingest.put(rest, 256, { as: "events", count: 1 })).itemsPerSec);
}
const top = median(tops);
const sender = startChild("shared", "load/steady.ts", {});
// Another process counts from the beginning: its events must be others.
const vary = rest.vary && { ...rest.vary, baseMs: rest.vary.baseMs + 3_600_000 };
const request = { ...rest, ...(vary && { vary }) };

async function phase(perSec: number): Promise<string[]> {
  progress(`${perSec} requests a second`);
  const forMs = ingest.settings.countMs;
  const load: SteadyLoad = {
    port: ingest.port,
    request,
    perSec,
    forMs,
    connectionsMin: clients,
    connectionsMax: clients,
  };
  const { cpuUs } = await ingest.usage();
  const [all, ...seconds] = await sender.ask<SteadyOutcome[]>(load as never);
  if (all === undefined) throw new Error("the generator says nothing");
  const before = ingest.answered.get("events") ?? 0;
  ingest.answered.set("events", before + all.good);
  const usage = await ingest.usage();
  if (process.env.SECONDS !== undefined)
    console.log(
      seconds.map((s) => [s.good, s.refused, s.other, s.p50Ms | 0, s.p99Ms | 0, s.lateMs | 0].join("/")).join("  "),
    );
  await sleep(1000);
  return [
    String(Math.round(perSec)),
    (perSec / top).toFixed(2),
    ...[all.good, all.refused, all.other].map(String),
    ...[all.p50Ms, all.p99Ms, all.maxMs, all.lateMs].map((ms) => ms.toFixed(1)),
    ((usage.cpuUs - cpuUs) / forMs / 10).toFixed(0),
    (usage.rssBytes / 2 ** 20).toFixed(0),
  ];
}

const below = Math.min(clients, (top * 2) / 3);
const rows = [await phase(below)];
if (below < clients) rows.push(await phase(clients));
await sender[Symbol.asyncDispose]();
const head = [
  "sent/s",
  "of top rate",
  "stored",
  "refused",
  "other",
  "p50 ms",
  "p99 ms",
  "most ms",
  "sent late p99 ms",
  "server CPU %",
  "MiB",
];
console.log(`\nTop rate: ${Math.round(top)} events/s.\n\n${table(head, rows)}`);
console.log("\nAims below two thirds of the top rate: none refused, p99 250 ms.");
console.log(await counted(ingest, hosts));
