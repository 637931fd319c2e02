// What requests of one client cost another: how long each holds the event loop, and the neighbour's p99 beside the worst.
import { openSync } from "node:fs";
import http2 from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { create } from "@bufbuild/protobuf";
import {
  EventQuerySchema,
  EventQueryService,
  SearchEventsRequestSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import { createClient, createKey, createTenant } from "../src/auth/create-tenant.ts";
import { hostile, requestsOf } from "../test/faults/hostile.ts";
import {
  batches,
  eventPages,
  type HostileLoad,
  metricSearches,
  resumedWatches,
  watchedBatch,
} from "../test/faults/hostile-loads.ts";
import { exportRequests, hostileExports } from "../test/faults/hostile-otlp.ts";
import { chainedRules, containsRules, cronWindow } from "../test/faults/hostile-stored.ts";
import { openHttp2, type RawRequest } from "../test/support/clients.ts";
import type { SteadyLoad, SteadyOutcome } from "./load/steady.ts";
import { callsOf } from "./support/calls.ts";
import { startChild } from "./support/child.ts";
import { startDatabase, tenantKey } from "./support/database.ts";
import { exporting } from "./support/exports.ts";
import { machineFacts } from "./support/machine.ts";
import { progress } from "./support/progress.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const MiB = 1024 * 1024;
const args = process.argv.slice(2);
const { values } = parseArgs({
  args,
  options: {
    entities: { type: "string", default: "50000" },
    seconds: { type: "string", default: "10" },
    streams: { type: "string", default: "5000" },
    only: { type: "string", default: "" },
  },
});
const forMs = Number(values.seconds) * 1000;

await using stack = new AsyncDisposableStack();
const database = stack.use(await startDatabase());
const { sql } = database;
const env = {
  ...database.env,
  limits: { streamsMax: 10_000, streamIdleMs: 600_000, receiverBytesMax: 64 * MiB },
};
const server = stack.use(startChild("server", "servers/belfry.ts", env));
const { port } = await server.ask<{ port: number }>();
const url = `http://127.0.0.1:${port}`;
const steady = stack.use(startChild("generator", "load/steady.ts", {}));
const attacker = { ...database.key, "content-type": "application/json" };

const { id: tenantId } = await createTenant(sql, "neighbour");
const { id: clientId } = await createClient(sql, tenantId, { name: "neighbour", type: "USER", role: "manager" });
const { text } = await createKey(sql, tenantId, clientId, { description: "", expiresMs: null });
const message = create(SearchEventsRequestSchema, { query: create(EventQuerySchema) });
const route = { method: "POST", path: "/v1/events:search" } as const;
const calls = callsOf(EventQueryService.method.searchEvents, message, route, { "service-api-key": text });

/** How long the server's event loop was held at most since the last time, ms. */
const heldMs = async (of = server) => (await of.ask<{ maxMs: number }>("loop")).maxMs;

type Outcome = SteadyOutcome & { heldMs: number };

/** A neighbour that searches 50 times a second, beside something else. */
async function beside(of = server, at = port): Promise<Outcome> {
  await heldMs(of);
  const load: SteadyLoad = { port: at, request: calls.rest, perSec: 50, forMs, connectionsMax: 50 };
  const [outcome] = await steady.ask<[SteadyOutcome]>(load);
  return { ...outcome, heldMs: await heldMs(of) };
}

/** Sends a request again and again over this many streams until it is stopped. */
function again(request: RawRequest, together: number): () => void {
  const connection = openHttp2({ url });
  let going = true;
  const one = async () => {
    while (going) await connection.send(request).catch(() => sleep(10));
  };
  for (let i = 0; i < together; i += 1) void one();
  return () => {
    going = false;
    connection.close();
  };
}

async function idleStreams(count: number): Promise<() => void> {
  const sessions: http2.ClientHttp2Session[] = [];
  let refused = 0;
  for (let opened = 0; opened < count; opened += 200) {
    const session = http2.connect(url).on("error", () => {});
    sessions.push(session);
    for (let i = 0; i < 200; i += 1) {
      const path = "/belfry.receiver.v1.DataReceiverService/PutEvent";
      const stream = session.request({
        ":method": "POST",
        ":path": path,
        ...attacker,
        "content-type": "application/grpc",
      });
      stream.on("error", () => {}).on("response", () => (refused += 1));
    }
    await sleep(20);
  }
  await sleep(2000);
  if (refused > 0) console.log(`${refused} of ${count} streams were refused`);
  return () => {
    for (const session of sessions) session.destroy();
  };
}

async function slowBodies(): Promise<() => void> {
  let going = true;
  const connections = [openHttp2({ url }), openHttp2({ url })];
  async function* half() {
    for (let sent = 0; sent < 32 * MiB; sent += 64 * 1024) yield Buffer.alloc(64 * 1024, " ");
    // Enough to be let go on.
    for (; going; await sleep(500)) yield Buffer.alloc(1024, " ");
  }
  const headers = { ...attacker, "content-length": String(64 * MiB) };
  for (const one of connections) one.send({ path: "/v1/data-receiver/events", headers, body: half() }).catch(() => {});
  await sleep(2000);
  return () => {
    going = false;
    for (const one of connections) one.close();
  };
}

console.log(`${commandOf("hostile", args)}\n`);
for (const line of [
  `A neighbour searches 50 times a second for ${values.seconds} s, beside one client that takes what it can get.`,
  ...machineFacts(database.version),
]) {
  console.log(line);
}

const [owner] = await sql<{ id: string }[]>`select tenant_id as id from api_clients where tenant_id <> ${tenantId}`;
await sql`
  insert into entities (tenant_id, id, name, dimensions, metadata, core_properties, custom_properties, model_ms,
    created_ms, updated_ms, liveness_ms)
  select ${owner?.id ?? ""}::uuid, decode(md5(i::text) || '00000000', 'hex'), 'host ' || i,
    jsonb_build_object('source', 'host-' || i), jsonb_build_object('owner', repeat('team ' || i || ' ', 20)), '{}', '{}', 0, 0, 0, 0
  from generate_series(1, ${Number(values.entities)}::int4) as i`;
await sql.unsafe("vacuum analyze entities");

const clause = { filter: { field: "metadataFields.owner", operation: "OP_REGEX", value: "(a|b|c)+.*z$" } };
const search: RawRequest = {
  path: "/v1/modelcontext/entities:search",
  headers: attacker,
  body: [Buffer.from(JSON.stringify({ search_input: { query: { clause } } }))],
};
const trial = openHttp2({ url });
const alone = await trial.send(search);
if (alone.status !== 200) throw new Error(`the search was answered ${alone.status}: ${alone.body}`);
trial.close();

/** Does again and again what one tenant may do, an attacker of its own for each. */
function loading(load: HostileLoad): [string, () => Promise<() => void>] {
  return [
    `beside ${load.name}`,
    async () => {
      const { run, close } = await load.prepare({ url }, await tenantKey(sql, load.name));
      let going = true;
      const wrong = new Set<string>();
      void (async () => {
        while (going) {
          for (const one of await run().catch((error: Error) => [error.message])) wrong.add(one);
          await sleep(1);
        }
      })();
      await sleep(500);
      return () => {
        going = false;
        close();
        for (const one of [...wrong].slice(0, 3))
          if (!/closed|destroyed/.test(one)) console.log(`${load.name}: ${one}`);
      };
    },
  ];
}

const scenes: [string, () => Promise<() => void> | (() => void)][] = [
  ["alone", () => () => {}],
  [`beside 40 searches by regular expression, ${Math.round(alone.ms)} ms each alone`, () => again(search, 40)],
  [`beside ${values.streams} idle streams`, () => idleStreams(Number(values.streams))],
  ["beside two half-sent bodies of 64 MiB", slowBodies],
  ...[
    watchedBatch(1500),
    resumedWatches(1500),
    batches(20),
    metricSearches(20),
    eventPages(40),
    chainedRules(),
    cronWindow(),
    containsRules(),
  ].map(loading),
  ["beside exports of all data", () => exporting(database.env)],
];
const chosen = scenes.filter(([name], place) => place === 0 || name.includes(values.only));
const rowOf = (name: string, { p50Ms, p99Ms, maxMs, lateMs, refused, other, heldMs: held }: Outcome) => [
  name,
  ...[p50Ms, p99Ms, maxMs, lateMs, held].map((ms) => ms.toFixed(1)),
  String(refused + other),
];
await beside(); // it warms up
const rows: string[][] = [];
for (const [name, begin] of chosen) {
  progress(name);
  const end = await begin();
  rows.push(rowOf(name, await beside()));
  end();
  await sleep(1000);
}
const fullDisk = "beside a log on a full disk";
if (fullDisk.includes(values.only)) {
  // Every write to it fails as on a full disk.
  const logging = startChild("server", "servers/belfry.ts", env, [], openSync("/dev/full", "w"));
  try {
    const { port: at } = await logging.ask<{ port: number }>();
    rows.push(rowOf(fullDisk, await beside(logging, at)));
  } catch (error) {
    console.log(`${fullDisk}: ${(error as Error).message}`);
  }
  await logging[Symbol.asyncDispose]();
}
console.log(`\n${table(["neighbour", "p50 ms", "p99 ms", "worst", "of it late", "loop held ms", "not good"], rows)}\n`);

/** Sends requests one by one; returns how long each held the loop. */
async function holding(requests: readonly (readonly [string, RawRequest])[]): Promise<[string, number, number][]> {
  const connection = openHttp2({ url });
  const held: [string, number, number][] = [];
  for (const [name, request] of requests) {
    progress(name);
    await heldMs();
    const { ms } = await connection.send(request);
    held.push([name, await heldMs(), ms]);
  }
  connection.close();
  return held.sort((a, b) => b[1] - a[1]);
}

const batch = (bytes: number): RawRequest => {
  const events = Array.from({ length: bytes / 2048 }, (_, i) => ({
    name: `event ${i % 100}`,
    timestamp: String(Date.now()),
    severity: "SEVERITY_ERROR",
    dimensions: { source: `host-${i % 1000}` },
    body: "x".repeat(1850),
  }));
  return { path: "/v1/data-receiver/events", headers: attacker, body: [Buffer.from(JSON.stringify({ events }))] };
};
const page = Buffer.from('{"query":{"pageInput":{"limit":1000}}}');
const key = database.key["service-api-key"] as string;
const corpus = (size: number, packed: boolean) =>
  Object.entries(hostile(size)).flatMap(([name, one]) =>
    requestsOf(one, key, packed).map((each) => [`${name} over ${each.name}`, each.request] as const),
  );
const exports = (size: number) =>
  Object.entries(hostileExports(size)).flatMap(([name, make]) =>
    exportRequests(make(), key, true).map((each) => [`${name} over ${each.name}`, each.request] as const),
  );
const groups: [string, () => readonly (readonly [string, RawRequest])[]][] = [
  ["bodies up to 4 MiB", () => [["a batch of events of 4 MiB", batch(4 * MiB)], ...corpus(700_000, false)]],
  [
    "the largest",
    () => [
      ["a batch of events of 16 MiB", batch(16 * MiB)],
      ["a search with an answer of 1,000 events", { path: "/v1/events:search", headers: attacker, body: [page] }],
      ...corpus(2_500_000, true),
    ],
  ],
  ["of OpenTelemetry", () => exports(1_600_000)],
];
for (const [name, requests] of groups) {
  const held = await holding(requests());
  const worst = held.slice(0, 5).map(([what, ms, took]) => [what, ms.toFixed(0), took.toFixed(0)]);
  console.log(
    `${held.length} requests, ${name}:\n${table(["the worst of them", "loop held ms", "answered after ms"], worst)}\n`,
  );
}
