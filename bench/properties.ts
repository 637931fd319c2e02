// Custom properties of many entities: set and deleted by a query, and by an updater while models come in.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connectOnce } from "../src/db/connect.ts";
import { putModels } from "../src/entities/put.ts";
import { type Database, startDatabase } from "./support/database.ts";
import { dropIndexes } from "./support/entity-table.ts";
import { machineFacts } from "./support/machine.ts";
import { drained, modelOf, modelServer, quantileOf } from "./support/models.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const { values: given } = parseArgs({
  options: { entities: { type: "string", default: "200000" }, only: { type: "string" } },
});
const entities = Number(given.entities);
const options = { batch: 100, connections: 2 };

await using database = await startDatabase();
await using server = await modelServer(database);
console.log(`${commandOf("properties", process.argv.slice(2))}\n`);
for (const line of machineFacts(database.version)) console.log(line);
const tenantId = await tenantOf(database);
// Without the limits of time that a server's connections have.
const { sql, close } = connectOnce(database.env.DATABASE_URL ?? "", "bench");
const indexes = await dropIndexes(sql, "%");
for (let from = 0; from < entities; from += 5000) {
  const models = Array.from({ length: 5000 }, (_, i) => modelOf(from + i, 0));
  await putModels(sql, tenantId, models, Date.now());
}
for (const { text } of indexes) await sql.unsafe(text);
await sql`vacuum analyze entities`;

const everything = { query: { clause: { filter: { field: "name", operation: "OP_STARTS_WITH", value: "Web" } } } };

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; answer: T }> {
  const startMs = performance.now();
  const answer = await work();
  const ms = performance.now() - startMs;
  await sql`vacuum entities`;
  return { ms, answer };
}

/** What any way of writing these properties takes at least. */
const plainSet = (value: number) =>
  timed(
    () => sql`
      update entities set custom_properties = custom_properties || ${JSON.stringify({ value })}::text::jsonb
      where tenant_id = ${tenantId} and deleted_ms is null and starts_with(name, 'Web')`,
  );
const plainDelete = () =>
  timed(
    () => sql`
      update entities set custom_properties = custom_properties - 'value'
      where tenant_id = ${tenantId} and deleted_ms is null and starts_with(name, 'Web')`,
  );
const set = (value: number) =>
  timed(() => server.call("modelcontext/customproperties:set", { input: everything, properties: { value } }));
const remove = () =>
  timed(() => server.call("modelcontext/customproperties:delete", { input: everything, property_keys: ["value"] }));

async function compareWrites() {
  const plainly = await plainSet(1);
  const gone = await plainDelete();
  const { ms, answer } = await set(2);
  if (new Set(answer.entity_ids).size !== entities) throw new Error(`${answer.entity_ids.length} ids were answered`);
  const removed = await remove();
  const rows = [
    ["plain update", plainly.ms.toFixed(0), ""],
    ["set", ms.toFixed(0), (ms / plainly.ms).toFixed(2)],
    ["plain update", gone.ms.toFixed(0), ""],
    ["delete", removed.ms.toFixed(0), (removed.ms / gone.ms).toFixed(2)],
  ];
  console.log(`\n${entities} entities by a query; the answer of set held ${entities} ids.`);
  console.log(table(["", "ms", "ratio"], rows));
}

async function ingest(until: () => boolean): Promise<number[]> {
  const timesMs: number[] = [];
  for (let from = 0; !until(); from = (from + 1000) % entities) {
    timesMs.push(...(await server.put(from, from + 1000, options)));
  }
  return timesMs;
}

async function compareIngest() {
  const usualEndMs = performance.now() + 12_000;
  const usual = await ingest(() => performance.now() > usualEndMs);
  let done = false;
  const startMs = performance.now();
  await server.call("modelcontext/custompropertyupdaters:create", {
    updaters: [
      {
        name: "all",
        enabled: true,
        properties: { owner: "operations", tier: 1 },
        entity_input: { clause: { filter: { field: "entity.name", operation: "OP_STARTS_WITH", value: "Web" } } },
      },
    ],
  });
  const runMs = matchedLeft().then((ms) => {
    done = true;
    return ms - startMs;
  });
  const during = await ingest(() => done);
  await drained(database);
  const line = (name: string, times: number[]) => [
    name,
    times.length.toFixed(0),
    quantileOf(times, 0.5).toFixed(1),
    quantileOf(times, 0.99).toFixed(1),
  ];
  console.log(
    `\nPutModels of ${options.batch} models over ${options.connections} connections, while an updater runs over all: it took ${((await runMs) / 1000).toFixed(1)} s.`,
  );
  console.log(table(["", "requests", "p50 ms", "p99 ms"], [line("usual", usual), line("during the run", during)]));
  console.log(`p99 is ${(quantileOf(during, 0.99) / quantileOf(usual, 0.99)).toFixed(2)} times its usual.`);
  const [row] = await sql<[{ count: bigint }]>`
  select count(*) from entities where custom_properties @> '{"owner": "operations", "tier": 1}'`;
  console.log(`${row.count} of ${entities} entities have the properties.`);
}

async function matchedLeft(): Promise<number> {
  for (;;) {
    const [row] = await sql<
      [{ count: bigint }]
    >`select count(*) from jobs where kind in ('properties.started', 'properties.matched')`;
    if (row.count === 0n) return performance.now();
    await sleep(100);
  }
}

async function tenantOf({ sql }: Database): Promise<string> {
  const [tenant] = await sql<[{ id: string }]>`select id from tenants`;
  return tenant.id;
}

if (given.only !== "run") await compareWrites();
if (given.only !== "set") await compareIngest();
await close();
