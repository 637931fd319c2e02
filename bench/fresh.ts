// The first minute of a server on an empty database that no one analyses, and the first seconds after a restart with data.
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { LoadRequest } from "./load/load.ts";
import { type Child, startChild } from "./support/child.ts";
import { type Database, startDatabase } from "./support/database.ts";
import { checkStored, putEvents } from "./support/events.ts";
import { type Generator, startGenerator } from "./support/generator.ts";
import { machineFacts, postgresCpuMs } from "./support/machine.ts";
import { progress } from "./support/progress.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const args = process.argv.slice(2);
const { values } = parseArgs({
  args,
  options: {
    seconds: { type: "string", default: "30" },
    restarts: { type: "string", default: "3" },
    only: { type: "string" },
    profile: { type: "string" },
    node: { type: "string", multiple: true, default: [] },
  },
});
/** Lengths below are those of half a minute. */
const scale = Number(values.seconds) / 30;
const seconds = (length: number) => `${Number((length * scale).toFixed(2))}`;

interface Measured {
  what: string;
  items: number;
  serverCpuUs: number;
  perSec: number;
  refused: number;
  p50Ms: number;
  p99Ms: number;
  serverUs: number;
  databaseUs: number;
}

interface Scene {
  name: string;
  /** Events a request. */
  count: number;
  connections: number;
}

const scenes: readonly Scene[] = [
  { name: "batches", count: 1000, connections: 4 },
  { name: "ones", count: 1, connections: 64 },
].filter(({ name }) => name.includes(values.only ?? ""));

/** A server on the database, and how long its start took. */
async function startServer({ env }: Database) {
  // As start.js has it once there is a data directory (design/processes-and-start).
  process.env.NODE_COMPILE_CACHE ??= join(env.BELFRY_DATA_DIR ?? "", "compiled");
  const sinceMs = performance.now();
  const profile =
    values.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${values.profile}`, "--cpu-prof-interval=500"];
  const child = startChild("shared", "servers/belfry.ts", env, [...profile, ...values.node]);
  const { port } = await child.ask<{ port: number }>();
  const { cpuUs } = await child.ask<{ cpuUs: number }>("cpu");
  return { child, port, startMs: performance.now() - sinceMs, startCpuMs: cpuUs / 1000 };
}

interface Running {
  scene: Scene;
  database: Database;
  generator: Generator;
  request: LoadRequest;
  acknowledged: number;
}

/** Puts the scene's load on a server for a while. */
async function measure(running: Running, { child, port }: { child: Child; port: number }, what: string, ms: number) {
  progress(`${running.scene.name}: ${what}`);
  const { scene, database, generator, request } = running;
  const usage = async () => ({
    serverUs: (await child.ask<{ cpuUs: number }>("cpu")).cpuUs,
    databaseUs: postgresCpuMs(database.pid) * 1000,
  });
  const before = await usage();
  const load = { port, request, connections: scene.connections, streams: 1, leadInMs: 0, countMs: ms * scale };
  const outcome = await generator.run(load);
  const after = await usage();
  const items = (outcome.answered - outcome.bad) * scene.count;
  running.acknowledged += items;
  const measured: Measured = {
    what,
    items,
    serverCpuUs: after.serverUs - before.serverUs,
    perSec: outcome.perSec * scene.count,
    refused: outcome.bad,
    p50Ms: outcome.p50Ms,
    p99Ms: outcome.p99Ms,
    serverUs: (after.serverUs - before.serverUs) / items,
    databaseUs: (after.databaseUs - before.databaseUs) / items,
  };
  return measured;
}

function show(rows: readonly Measured[], base: Measured): string {
  const head = [
    "",
    "events/s",
    "ratio",
    "refused",
    "p50 ms",
    "p99 ms",
    "server µs/event",
    "by CPU",
    "PostgreSQL µs/event",
  ];
  const lines = rows.map((row) => [
    row.what,
    row.perSec.toFixed(0),
    (row.perSec / base.perSec).toFixed(2),
    String(row.refused),
    row.p50Ms.toFixed(0),
    row.p99Ms.toFixed(0),
    row.serverUs.toFixed(1),
    (base.serverUs / row.serverUs).toFixed(2),
    row.databaseUs.toFixed(1),
  ]);
  return table(head, lines);
}

async function play(scene: Scene): Promise<void> {
  await using database = await startDatabase("shared");
  await using generator = startGenerator("node", true, "shared");
  const { sql, key, version } = database;
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`;
  for (const { name } of tables) await sql.unsafe(`alter table "${name}" set (autovacuum_enabled = false)`);
  const request = putEvents(scene.count, 16_000 / scene.count, key).grpc;
  const running: Running = { scene, database, generator, request, acknowledged: 0 };
  for (const line of [
    "",
    ...machineFacts(version, true),
    "",
    `${scene.connections} clients, ${scene.count} a request`,
    "",
  ]) {
    console.log(line);
  }

  const rows: Measured[] = [];
  {
    const server = await startServer(database);
    await using _ = server.child;
    for (let at = 0; at < 30; at += 5) {
      rows.push(await measure(running, server, `fresh, ${seconds(at)} to ${seconds(at + 5)} s`, 5000));
    }
    await sql`analyze`;
    await measure(running, server, "plans are made", 2000);
    const base = await measure(running, server, "after ANALYZE", 10_000);
    console.log(show([...rows, base], base));
  }

  for (let restart = 0; restart < Number(values.restarts); restart++) {
    const server = await startServer(database);
    await using _ = server.child;
    const after: Measured[] = [];
    for (const [from, to] of [
      [0, 1],
      [1, 3],
      [3, 5],
      [5, 10],
    ] as const) {
      after.push(await measure(running, server, `restarted, ${seconds(from)} to ${seconds(to)} s`, (to - from) * 1000));
    }
    await measure(running, server, "steady", 5000);
    const base = await measure(running, server, "then", 10_000);
    const sum = (of: (row: Measured) => number) => after.reduce((all, row) => all + of(row), 0);
    const byCpu = base.serverUs / (sum(({ serverCpuUs }) => serverCpuUs) / sum(({ items }) => items));
    console.log(`\n${show([...after, base], base)}`);
    console.log(
      `The start took ${server.startMs.toFixed(0)} ms, ${server.startCpuMs.toFixed(0)} ms of a processor; the first ${seconds(10)} s had ` +
        `${(sum(({ items }) => items) / (10 * scale) / base.perSec).toFixed(2)} of the rate after that, ${byCpu.toFixed(2)} by CPU.`,
    );
  }
  console.log(`\n${await checkStored(database, running.acknowledged)}`);
}

console.log(`${commandOf("fresh", args)}\n`);
for (const line of [
  "PutEvents over gRPC of new instances of events of 16,000 hosts, on an empty database with autovacuum off, from the server's",
  "first second on; then after ANALYZE; then by servers that are started again on the same data. Server, generator and",
  "PostgreSQL share all processors. `ratio` is to the last line of each table, `by CPU` the same in the server's processor time.",
]) {
  console.log(line);
}
for (const scene of scenes) await play(scene);
