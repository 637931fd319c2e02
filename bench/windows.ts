// Maintenance windows that start at the same second, and one over many entities, while models come in.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connectOnce } from "../src/db/connect.ts";
import { entityId, idText } from "../src/entities/identity.ts";
import { putModels } from "../src/entities/put.ts";
import { startDatabase } from "./support/database.ts";
import { dropIndexes } from "./support/entity-table.ts";
import { machineFacts } from "./support/machine.ts";
import { modelOf, modelServer, quantileOf } from "./support/models.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const { values: given } = parseArgs({
  options: {
    entities: { type: "string", default: "200000" },
    windows: { type: "string", default: "100" },
    each: { type: "string", default: "1000" },
    rounds: { type: "string", default: "2" },
  },
});
const entities = Number(given.entities);
const windows = Number(given.windows);
const each = Number(given.each);
const rounds = Number(given.rounds);
const path = "modelcontext/maintwindows";
const hourMs = 3_600_000;

await using database = await startDatabase();
await using server = await modelServer(database);
console.log(`${commandOf("windows", process.argv.slice(2))}\n`);
for (const line of machineFacts(database.version)) console.log(line);
// Without the limits of time that a server's connections have.
const { sql, close } = connectOnce(database.env.DATABASE_URL ?? "", "bench");
const [{ id: tenantId }] = await sql<[{ id: string }]>`select id from tenants`;
const indexes = await dropIndexes(sql, "%");
for (let from = 0; from < entities; from += 5000) {
  const models = Array.from({ length: Math.min(5000, entities - from) }, (_, i) => modelOf(from + i, 0));
  await putModels(sql, tenantId, models, Date.now());
}
for (const { text } of indexes) await sql.unsafe(text);
await sql`vacuum analyze entities`;

const specification = (name: string, start: number, target: object) => ({
  specification: { name, schedule: { start, duration: hourMs }, maintenanceState: 300, ...target },
});
const idOf = (number: number) => idText(entityId(tenantId, modelOf(number, 0).dimensions));

/** Puts models until `done`; answers the times of the requests, ms. */
async function ingest(done: () => boolean): Promise<number[]> {
  const timesMs: number[] = [];
  for (let from = 0; !done(); from = (from + 200) % entities) {
    timesMs.push(...(await server.put(from, Math.min(from + 200, entities), { batch: 100, connections: 2 })));
  }
  return timesMs;
}

async function during<T>(work: () => Promise<T>): Promise<{ answer: T; p99Ms: number }> {
  let over = false;
  const coming = ingest(() => over);
  const answer = await work();
  over = true;
  return { answer, p99Ms: quantileOf(await coming, 0.99) };
}

/** How long after `startMs` all windows run, and all of their entities have the state, ms. */
async function started(startMs: number, count: number, members: number) {
  let runningMs = 0;
  for (;;) {
    const [row] = await sql<[{ running: number; members: number }]>`
      select (select count(*)::int4 from maintenance_windows where tenant_id = ${tenantId} and run_state = 1) as running,
        (select count(*)::int4 from maintenance_members where tenant_id = ${tenantId}) as members`;
    if (row.running === count && runningMs === 0) runningMs = Date.now() - startMs;
    if (row.members === members) return { runningMs, setMs: Date.now() - startMs };
    await sleep(50);
  }
}

/** Deletes all windows; answers how long it takes until no entity is in one, ms. */
async function ended() {
  const { maintWindows } = await server.call(`${path}:list`, { page_input: { limit: 1000 } });
  const startMs = Date.now();
  await server.call(`${path}:deleteBulk`, { ids: maintWindows.map(({ id }: { id: string }) => id) });
  for (;;) {
    const [row] = await sql<[{ left: boolean }]>`
      select exists (select from maintenance_members where tenant_id = ${tenantId}) as left`;
    if (!row.left) return Date.now() - startMs;
    await sleep(50);
  }
}

async function manyAtOnce() {
  const startMs = Date.now() + 5000 + windows * 250;
  for (let i = 0; i < windows; i++) {
    const ids = Array.from({ length: each }, (_, k) => idOf((i * each + k) % entities));
    await server.call(path, specification(`window ${i}`, startMs, { withIds: { ids } }));
  }
  await sleep(Math.max(0, startMs - 500 - Date.now()));
  return await started(startMs, windows, windows * each);
}

async function oneLarge() {
  const startMs = Date.now();
  const clause = { filter: { field: "name", operation: "OP_STARTS_WITH", value: "Web" } };
  await server.call(path, specification("large", startMs, { query: { clause } }));
  return await started(startMs, 1, entities);
}

const whole = (ms: number) => ms.toFixed(0);
const rows: string[][] = [];
for (let round = 1; round <= rounds; round++) {
  const usual = await during(() => sleep(8000));
  const many = await during(manyAtOnce);
  const manyBack = await ended();
  await sql`vacuum entities`;
  const large = await during(oneLarge);
  const largeBack = await ended();
  await sql`vacuum entities`;
  const row = (what: string, { answer, p99Ms }: typeof many, backMs: number) => [
    what,
    whole(answer.runningMs),
    whole(answer.setMs),
    whole(backMs),
    whole(p99Ms),
    (p99Ms / usual.p99Ms).toFixed(2),
  ];
  rows.push(["models alone", "", "", "", whole(usual.p99Ms), "1"]);
  rows.push(row(`${windows} windows of ${each}`, many, manyBack), row(`1 window of ${entities}`, large, largeBack));
}
await close();
console.log(
  `\n${table(["", "all run after, ms", "all states after, ms", "all back after, ms", "p99 of PutModels of 100, ms", "of usual"], rows)}`,
);
