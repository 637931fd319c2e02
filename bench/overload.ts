// PutEvents at three times the rate that the server can take, for a minute.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { SteadyLoad, SteadyOutcome } from "./load/steady.ts";
import { startChild } from "./support/child.ts";
import { startDatabase } from "./support/database.ts";
import { checkStored, putEvents } from "./support/events.ts";
import { startGenerator } from "./support/generator.ts";
import { machineFacts } from "./support/machine.ts";
import { progress } from "./support/progress.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const args = process.argv.slice(2);
const { values } = parseArgs({
  args,
  options: { seconds: { type: "string", default: "60" }, events: { type: "string", default: "1" } },
});
const forMs = Number(values.seconds) * 1000;
/** Of the phases around the overload, and before it. */
const aroundMs = Math.min(10_000, forMs);
const warmUpMs = Math.min(20_000, forMs);
const capacityMs = Math.min(8000, forMs);
const events = Number(values.events);

await using stack = new AsyncDisposableStack();
const database = stack.use(await startDatabase());
const server = stack.use(startChild("server", "servers/belfry.ts", database.env));
const { port } = await server.ask<{ port: number }>();
const request = putEvents(events, Math.ceil(500 / events), database.key).rest;

console.log(`${commandOf("overload", args)}\n`);
for (const line of [
  `PutEvents of ${events === 1 ? "one event" : `${events} events`} over /v1, a new instance of one of 500 events each time. First as many at once as may store and a few more, to find`,
  "the rate that the server can take, and three times that, in case it can take more; then a quarter of the rate, three times it,",
  "and half of it at once afterwards. Requests are sent when they are due, whether earlier ones were answered or not; times",
  "count from then. The server logs a line each.",
  ...machineFacts(database.version),
]) {
  console.log(line);
}

async function memoryMiB(): Promise<number> {
  const { rssBytes } = await server.ask<{ rssBytes: number }>("cpu");
  return rssBytes / 2 ** 20;
}

let acknowledged = 0;

/** The most that it takes: requests in work as many as may store, and a few that wait. */
async function capacity(): Promise<number> {
  await using generator = startGenerator("node", true);
  const load = { port, request, connections: 5, streams: 1, leadInMs: 500 };
  let perSec = 0;
  progress("as much as it takes");
  // The first part warms up, and is forgotten.
  for (const countMs of [warmUpMs, capacityMs]) {
    const outcome = await generator.run({ ...load, countMs });
    if (outcome.bad > 0) throw new Error(`${outcome.bad} answers were not good before there was overload`);
    acknowledged += outcome.answered;
    perSec = outcome.perSec;
  }
  return perSec;
}

let takes = await capacity();
// Another process counts from the beginning: its events must be others.
const { vary } = request;
const other = { ...request, ...(vary && { vary: { ...vary, baseMs: vary.baseMs + 3_600_000 } }) };
const sender = stack.use(startChild("generator", "load/steady.ts", {}));
const rows: string[][] = [];

async function phase(name: string, perSec: number, phaseMs: number) {
  progress(name);
  let peakMiB = await memoryMiB();
  let going = true;
  const watch = (async () => {
    for (; going; await sleep(500)) peakMiB = Math.max(peakMiB, await memoryMiB());
  })();
  const load: SteadyLoad = { port, request: other, perSec, forMs: phaseMs, connectionsMax: 1000 };
  const [all, ...seconds] = await sender.ask<SteadyOutcome[]>(load);
  going = false;
  await watch;
  if (all === undefined) throw new Error("the generator says nothing");
  acknowledged += all.good;
  const show = (what: string, part: SteadyOutcome, ms: number) =>
    rows.push([
      what,
      ...[perSec, (part.good * 1000) / ms, (part.refused * 1000) / ms, part.other].map((n) => String(Math.round(n))),
      ...[part.p50Ms, part.p99Ms, part.maxMs, part.lateMs].map((n) => n.toFixed(1)),
      peakMiB.toFixed(0),
    ]);
  show(name, all, phaseMs);
  return { all, seconds, peakMiB, show };
}

// Five at once may be too few for a larger machine: what it takes when more comes is the rate, if that is higher.
const pressed = await phase("three times what those took", takes * 3, 2 * aroundMs);
takes = Math.max(takes, (pressed.all.good * 1000) / (2 * aroundMs));
await sleep(2000);
const unloaded = await phase("a quarter of it", takes / 4, aroundMs);
const over = await phase("three times it", takes * 3, forMs);
const after = await phase("half of it, at once", takes / 2, aroundMs);
const [first] = after.seconds;
if (first !== undefined) after.show("… its first second", first, 1000);

console.log(`\nIt takes ${Math.round(takes)} requests/s.\n`);
console.log(
  table(
    [
      "",
      "sent/s",
      "good/s",
      "429/s",
      "other",
      "p50 ms",
      "p99 ms",
      "most ms",
      "sent late p99 ms",
      "memory MiB, at most",
    ],
    rows,
  ),
);
const ratio = over.all.p99Ms / unloaded.all.p99Ms;
console.log(`\np99 of good answers under overload: ${ratio.toFixed(1)} times that at a quarter of the rate.`);
console.log(await checkStored(database, acknowledged * events));
