// One server as one process, and as two on one port, on one PostgreSQL: what they take, and what an item costs.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { LoadRequest } from "./load/load.ts";
import { median } from "./support/compare.ts";
import { startDatabase } from "./support/database.ts";
import { putEvents, putModels } from "./support/events.ts";
import { startGenerator } from "./support/generator.ts";
import { machineFacts, postgresCpuMs } from "./support/machine.ts";
import { type MachineProcess, startMachineProcess } from "./support/machine-process.ts";
import { putPoints } from "./support/points.ts";
import { commandOf, settingsOf } from "./support/settings.ts";
import { markdownTable } from "./support/table.ts";

const hosts = 10_000;
const rangeMs = 600_000;
const sizes = [1, 2] as const;
const [restMs, idleMs] = [5000, 5000];

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const args = process.argv.slice(2);
const settings = settingsOf(args, { rounds: 3, countMs: 1500 });
await using stack = new AsyncDisposableStack();
const database = stack.use(await startDatabase("shared"));
const machines: MachineProcess[] = [];
for (const size of sizes) machines.push(stack.use(await startMachineProcess(database.env, size, await freePort())));
const generator = stack.use(startGenerator("node", true, "shared"));

const { key } = database;
const pointsMs = Date.now() - 6 * 3_600_000;
interface Line {
  name: string;
  request: LoadRequest;
  connections: number;
  count: number;
}
const lines: Line[] = [
  {
    name: "known models, 1,000 a request",
    request: putModels(1000, hosts / 1000, key).grpc,
    connections: 6,
    count: 1000,
  },
  {
    name: "events, 1,000 a request",
    request: putEvents(1000, hosts / 1000, key).grpc,
    connections: 6,
    count: 1000,
  },
  { name: "events, one a request", request: putEvents(1, hosts, key).grpc, connections: 64, count: 1 },
  {
    name: "points, 1,000 a request",
    request: putPoints(1000, hosts, pointsMs, key).grpc,
    connections: 6,
    count: 1000,
  },
];

interface Seen {
  perSec: number;
  serverUs: number;
  postgresUs: number;
}
let ranges = 0;

async function measure({ request, connections, count }: Line, machine: MachineProcess, countMs: number): Promise<Seen> {
  ranges += 1;
  const { vary } = request;
  // None sends what another run has sent.
  const own = vary === undefined ? request : { ...request, vary: { ...vary, baseMs: vary.baseMs + ranges * rangeMs } };
  const before = { server: machine.cpuUs(), postgres: postgresCpuMs(database.pid) * 1000 };
  const { port } = machine;
  const outcome = await generator.run({ port, request: own, connections, streams: 1, leadInMs: 200, countMs });
  const stored = (outcome.answered - outcome.bad) * count;
  return {
    perSec: outcome.perSec * count,
    serverUs: (machine.cpuUs() - before.server) / stored,
    postgresUs: (postgresCpuMs(database.pid) * 1000 - before.postgres) / stored,
  };
}

console.log(`${commandOf("processes", args)}\n`);
console.log("Two servers run all the time on one database, one of one process and one of two on one port.");
for (const line of machineFacts(database.version, true)) console.log(line);
for (const line of lines) for (const machine of machines) await measure(line, machine, 400);
const seen = new Map(lines.map(({ name }) => [name, sizes.map((): Seen[] => [])]));
for (let round = 0; round < settings.rounds; round++) {
  for (const line of lines) {
    for (const i of round % 2 === 0 ? [0, 1] : [1, 0]) {
      seen.get(line.name)?.[i]?.push(await measure(line, machines[i] as MachineProcess, settings.countMs));
    }
  }
}
await sleep(restMs);
const idleFrom = machines.map((machine) => machine.cpuUs());
await sleep(idleMs);
const idle = machines.map((machine, i) => (machine.cpuUs() - (idleFrom[i] ?? 0)) / idleMs);
const costs = (number: number) => (number < 10 ? number.toFixed(2) : Math.round(number).toLocaleString("en"));
const rows = Array.from(seen, ([name, [one = [], two = []]]) => {
  const of = (member: keyof Seen) => [one, two].map((all) => median(all.map((each) => each[member])));
  const ratio = median(two.map(({ perSec }, i) => perSec / (one[i]?.perSec ?? Number.NaN)));
  const pair = (member: keyof Seen) => of(member).map(costs).join(" · ");
  return [name, costs(of("perSec")[0] ?? 0), ratio.toFixed(2), pair("serverUs"), pair("postgresUs")];
});
const head = ["", "one process, a second", "two, to one", "server, µs an item, 1 · 2", "PostgreSQL, µs an item"];
console.log(`\n${markdownTable(head, rows)}\n`);
console.log(
  `Processor time while idle, ms a second: ${idle.map(costs).join(" · ")}. Between the first and the last that serves: ${machines[1]?.startSpreadMs()} ms.`,
);
console.log(
  `Memory of the owner of the port and of two processes, MB: ${machines[1]?.memory().map(costs).join(", ")}.`,
);
