// The same requests on PostgreSQL, and on a coordinator with two workers, of one program: it is PostgreSQL with Citus, which TEST_CITUS names.
import { chmodSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../src/config/settings.ts";
import { connect } from "../src/db/connect.ts";
import { distribute } from "../src/db/distribute.ts";
import { migrate } from "../src/db/migrate.ts";
import { dueLanes } from "../src/jobs/due-lanes.ts";
import { startCluster } from "../test/support/citus.ts";
import type { Load } from "./load/load.ts";
import type { Calls } from "./support/calls.ts";
import { startChild } from "./support/child.ts";
import { median } from "./support/compare.ts";
import { tenantKey } from "./support/database.ts";
import { putEvents, putModels } from "./support/events.ts";
import { startGenerator } from "./support/generator.ts";
import { machineFacts, postgresCpuMs } from "./support/machine.ts";
import { commandOf, settingsOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const given = process.env.TEST_CITUS;
if (given === undefined) {
  console.log("citus: not run; TEST_CITUS names no package of PostgreSQL with Citus");
  process.exit(0);
}
const args = process.argv.slice(2);
const settings = settingsOf(args, { rounds: 3, countMs: 5000 });
/** The nodes write to their disks, as in service. */
process.env.CITUS_FSYNC = "on";
const sets = 16;

/** What is sent, and over how many connections. */
const loads: Record<string, { count: number; connections: number; calls(key: Record<string, string>): Calls }> = {
  "events, 1,000 a request": { count: 1000, connections: 4, calls: (key) => putEvents(1000, sets, key) },
  "known models, 1,000 a request": { count: 1000, connections: 4, calls: (key) => putModels(1000, sets, key) },
  "events, one a request": { count: 1, connections: 32, calls: (key) => putEvents(1, sets, key) },
};

await using stack = new AsyncDisposableStack();
const generator = stack.use(startGenerator("node", true, "shared"));

/** A server on a database of as many workers. */
async function side(workers: number) {
  const dir = mkdtempSync(join(tmpdir(), "belfry-bench-"));
  chmodSync(dir, 0o711);
  const cluster = await startCluster(given as string, dir, workers);
  stack.defer(() => cluster.stop());
  const [url] = cluster.urls as [string];
  await migrate(url);
  const began = performance.now();
  if (workers > 0) await distribute(url, 32);
  const distributeMs = performance.now() - began;
  const env = {
    DATABASE_URL: url,
    BELFRY_DATA_DIR: dir,
    BELFRY_HOST: "127.0.0.1",
    BELFRY_PORT: "0",
    BELFRY_PLAINTEXT: "1",
  };
  const pool = connect(url, { ...readConfig(env), distributed: workers > 0 });
  stack.defer(() => pool.close());
  const key = await tenantKey(pool.sql, "bench");
  const server = stack.use(startChild("shared", "servers/belfry.ts", env));
  const { port } = await server.ask<{ port: number }>();
  const pids = Array.from({ length: workers + 1 }, (_, i) =>
    Number(readFileSync(join(dir, "nodes", `n${i}`, "postmaster.pid"), "utf8").split("\n", 1)[0]),
  );
  const calls = new Map(Object.entries(loads).map(([name, { calls }]) => [name, calls(key)]));

  async function run(name: string, countMs = settings.countMs) {
    const { count, connections } = loads[name] as (typeof loads)[string];
    const request = (calls.get(name) as Calls).grpc;
    const cpu = async () => ({
      server: (await server.ask<{ cpuUs: number }>("cpu")).cpuUs,
      nodes: pids.reduce((sum, pid) => sum + postgresCpuMs(pid), 0) * 1000,
    });
    const before = await cpu();
    const load: Load = { port, request, connections, streams: 1, leadInMs: 0, countMs };
    const { answered, bad, perSec } = await generator.run(load);
    const after = await cpu();
    const items = (answered - bad) * count;
    return {
      bad,
      perSec: perSec * count,
      server: (after.server - before.server) / items,
      nodes: (after.nodes - before.nodes) / items,
    };
  }
  return { pool, run, distributeMs };
}

const plain = await side(0);
const cluster = await side(2);
const sides = [plain, cluster];
console.log(`${commandOf("citus", args)}\n\n${machineFacts("18 with Citus", true).join("\n")}\n`);
const rows: string[][] = [];
for (const name of Object.keys(loads)) {
  for (const { run } of sides) await run(name, 2000);
  const rounds: { plain: Awaited<ReturnType<typeof plain.run>>; cluster: Awaited<ReturnType<typeof plain.run>> }[] = [];
  for (let round = 0; round < settings.rounds; round++) {
    if (round % 2 === 0) rounds.push({ plain: await plain.run(name), cluster: await cluster.run(name) });
    else {
      const first = await cluster.run(name);
      rounds.push({ cluster: first, plain: await plain.run(name) });
    }
  }
  const ratios = rounds.map((each) => each.cluster.perSec / each.plain.perSec);
  const of = (which: "plain" | "cluster", what: "perSec" | "server" | "nodes", digits: number) =>
    median(rounds.map((each) => each[which][what])).toFixed(digits);
  rows.push([
    name,
    of("plain", "perSec", 0),
    `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`,
    `${of("plain", "server", 1)} · ${of("cluster", "server", 1)}`,
    `${of("plain", "nodes", 1)} · ${of("cluster", "nodes", 1)}`,
    String(rounds.reduce((sum, each) => sum + each.plain.bad + each.cluster.bad, 0)),
  ]);
}
const head = ["", "PostgreSQL, a second", "Citus, to it", "server, µs an item", "nodes, µs an item", "refused"];
console.log(table(head, rows));

const looks: number[] = [];
for (let i = 0; i < 200; i++) {
  const began = performance.now();
  await dueLanes(cluster.pool, ["deliveries"], Date.now());
  looks.push(performance.now() - began);
}
console.log(
  `\ndistribute of an empty database, 32 parts: ${(cluster.distributeMs / 1000).toFixed(1)} s; a look for due work: ${median(looks).toFixed(1)} ms in the middle of 200`,
);
