// Bad requests of all kinds, and how other clients fare meanwhile.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { create } from "@bufbuild/protobuf";
import {
  EventQuerySchema,
  EventQueryService,
  SearchEventsRequestSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import type { AttackOrder, AttackReport } from "./load/attack.ts";
import type { Outcome } from "./load/load.ts";
import type { SteadyLoad, SteadyOutcome } from "./load/steady.ts";
import { callsOf } from "./support/calls.ts";
import { startChild } from "./support/child.ts";
import { startDatabase } from "./support/database.ts";
import { startGenerator } from "./support/generator.ts";
import { machineFacts } from "./support/machine.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const args = process.argv.slice(2);
const { values } = parseArgs({
  args,
  options: {
    requests: { type: "string", default: "100000" },
    rounds: { type: "string", default: "8" },
    together: { type: "string", default: "30" },
    "per-second": { type: "string", default: "1000" },
    seed: { type: "string", default: "1" },
  },
});

await using stack = new AsyncDisposableStack();
process.once("SIGINT", () => void stack.disposeAsync().finally(() => process.exit(130)));
const database = stack.use(await startDatabase());
const server = stack.use(startChild("server", "servers/belfry.ts", database.env));
const { port } = await server.ask<{ port: number }>();
const attacker = stack.use(startChild("attacker", "load/attack.ts", {}));
const over1 = stack.use(startChild("generator", "load/steady.ts", {}));
const over2 = stack.use(startGenerator("node", true));
const message = create(SearchEventsRequestSchema, { query: create(EventQuerySchema) });
const calls = callsOf(
  EventQueryService.method.searchEvents,
  message,
  { method: "POST", path: "/v1/events:search" },
  database.key,
);

console.log(`${commandOf("floods", args)}\n`);
for (const line of [
  "SearchEvents on an empty database, 50 a second over /v1 (HTTP/1.1) and one after the other over gRPC (HTTP/2), by turns alone and beside",
  `${values.requests} bad requests in ${values.rounds} floods, ${values["per-second"]} a second from up to ${values.together} connections at once: slow and broken heads, half bodies,`,
  "resets, floods of PING and SETTINGS, 100 MB announced, bombs, rubbish; what sends them runs at nice 19 beside the generator. Times are medians of parts of 4 s,",
  "and those of the worst part.",
  ...machineFacts(database.version),
]) {
  console.log(line);
}

interface Part {
  v1: SteadyOutcome;
  grpc: Outcome;
  rssMiB: number;
  /** Of the server's processor. */
  busyShare: number;
}

const usage = () => server.ask<{ cpuUs: number; rssBytes: number }>("cpu");

async function part(): Promise<Part> {
  const begin = await usage();
  const beginMs = performance.now();
  const load: SteadyLoad = { port, request: calls.rest, perSec: 50, forMs: 4000, connectionsMax: 50 };
  const [[v1], grpc] = await Promise.all([
    over1.ask<[SteadyOutcome]>(load),
    over2.run({ port, request: calls.grpc, connections: 1, streams: 1, leadInMs: 0, countMs: 4000 }),
  ]);
  const { cpuUs, rssBytes } = await usage();
  const busyShare = (cpuUs - begin.cpuUs) / 1000 / (performance.now() - beginMs);
  return { v1, grpc, rssMiB: rssBytes / 2 ** 20, busyShare };
}

async function parts(count: number): Promise<Part[]> {
  const all: Part[] = [];
  for (let i = 0; i < count; i += 1) all.push(await part());
  return all;
}

const rounds = Number(values.rounds);
const order: AttackOrder = {
  url: `http://127.0.0.1:${port}`,
  key: database.key["service-api-key"] as string,
  requests: Number(values.requests) / rounds,
  together: Number(values.together),
  perSec: Number(values["per-second"]),
  rampMs: 2000,
  seed: Number(values.seed),
};

/** What clients saw while a flood lasted, and the flood's own account. */
async function flood(seed: number): Promise<{ parts: Part[]; report: AttackReport }> {
  const all: Part[] = [];
  let over = false;
  const attacking = attacker.ask<AttackReport>({ ...order, seed }).finally(() => {
    over = true;
  });
  attacking.catch(() => undefined); // told below
  await sleep(order.rampMs);
  // A part that the flood does not outlast is neither beside it nor alone.
  while (!over) {
    const one = await part();
    if (!over) all.push(one);
  }
  if (all.length === 0)
    throw new Error("a flood must last longer than a part of 4 s: --requests, --rounds, --per-second");
  return { parts: all, report: await attacking };
}

// It warms up: a server of some minutes has seen bad requests, too, and has compiled what answers them.
const reports = [(await flood(order.seed)).report];
// The machine is not the same from minute to minute, so that both are asked in turns.
const turns: { alone: Part[]; beside: Part[] }[] = [];
for (let round = 1; round <= rounds; round += 1) {
  await sleep(2000);
  const alone = await parts(3);
  const { parts: beside, report } = await flood(order.seed + round);
  turns.push({ alone, beside });
  reports.push(report);
}

function row(name: string, all: readonly Part[]): string[] {
  const sorted = (of: (part: Part) => number) => all.map(of).sort((a, b) => a - b);
  const times = (of: (part: Part) => number) => {
    const list = sorted(of);
    return [list[list.length >> 1], list.at(-1)].map((ms) => (ms ?? Number.NaN).toFixed(1));
  };
  const bad = all.reduce((sum, { v1, grpc }) => sum + v1.refused + v1.other + grpc.bad, 0);
  const memory = sorted(({ rssMiB }) => rssMiB);
  const busy = sorted(({ busyShare }) => busyShare);
  return [
    name,
    ...times(({ v1 }) => v1.p99Ms),
    times(({ v1 }) => v1.lateMs)[0] ?? "",
    ...times(({ grpc }) => grpc.p99Ms),
    String(bad),
    `${(100 * (busy[busy.length >> 1] ?? Number.NaN)).toFixed(0)} %`,
    `${memory[0]?.toFixed(0)}–${memory.at(-1)?.toFixed(0)}`,
  ];
}

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
const flooded = reports.slice(1);
const halves = [turns.slice(0, rounds >> 1), turns.slice(rounds >> 1)] as const;
console.log(
  `\n${sum(flooded.map(({ requests }) => requests))} bad requests over ${sum(flooded.map(({ connections }) => connections))} connections.\n`,
);
console.log(
  table(
    ["", "/v1 p99 ms", "worst", "of it sent late", "gRPC p99 ms", "worst", "not good", "processor", "memory MiB"],
    [
      row(
        "alone",
        turns.flatMap(({ alone }) => alone),
      ),
      row(
        "beside a flood",
        turns.flatMap(({ beside }) => beside),
      ),
      ...halves.flatMap((half, i) => [
        row(
          `${i === 0 ? "first" : "second"} half: alone`,
          half.flatMap(({ alone }) => alone),
        ),
        row(
          "… beside a flood",
          half.flatMap(({ beside }) => beside),
        ),
      ]),
    ],
  ),
);
const most = (all: readonly Part[]) => Math.max(...all.map(({ rssMiB }) => rssMiB)).toFixed(0);
console.log(`\nMost memory beside each flood, MiB: ${turns.map(({ beside }) => most(beside)).join(", ")}.`);
const byKind: Record<string, number> = {};
for (const report of flooded) {
  for (const [kind, count] of Object.entries(report.byKind)) byKind[kind] = (byKind[kind] ?? 0) + count;
}
console.log(
  `\n${table(
    ["kind", "requests"],
    Object.entries(byKind).map(([kind, n]) => [kind, String(n)]),
  )}\n`,
);
const misshapen = reports.flatMap((report) => report.misshapen);
console.log(
  misshapen.length === 0
    ? "Every answer to them was an error in the server's form."
    : `Not in the server's form:\n${misshapen.slice(0, 5).join("\n")}`,
);
