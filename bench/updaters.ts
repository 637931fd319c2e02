// Models of 10,000 known entities, each with something new, while 100 updaters are enabled, and while none is.
import { startDatabase } from "./support/database.ts";
import { machineFacts } from "./support/machine.ts";
import { drained, modelServer, quantileOf } from "./support/models.ts";
import { commandOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

const entities = 10_000;
const rounds = 7;
const options = { batch: 100, connections: 4 };

await using database = await startDatabase();
await using server = await modelServer(database);
console.log(`${commandOf("updaters", process.argv.slice(2))}\n`);
console.log(
  `PutModels of ${options.batch} models over ${options.connections} connections, ${entities} entities that all change, ${rounds} rounds.`,
);
for (const line of machineFacts(database.version)) console.log(line);

const updaters = Array.from({ length: 100 }, (_, i) => ({
  name: `updater ${i}`,
  sequence: i,
  properties: { [`property ${i % 20}`]: `value ${i}` },
  entity_input: {
    clause: {
      and: {
        clauses: [
          { filter: { field: "entity.dimensions.rack", operation: "OP_EQUALS", value: `rack-${i}` } },
          { filter: { field: "entity.name", operation: "OP_STARTS_WITH", value: "Web" } },
        ],
      },
    },
  },
}));
const { results } = await server.call("modelcontext/custompropertyupdaters:create", { updaters });
const ids = results.map(({ id }: { id: string }) => id);
const manage = (action: string) => server.call("modelcontext/custompropertyupdaters:manage", { ids, action });

await server.put(0, entities, options);
const without: { totalMs: number; p99Ms: number }[] = [];
const within: { totalMs: number; p99Ms: number; lagMs: number }[] = [];

async function measure() {
  const startMs = performance.now();
  const timesMs = await server.put(0, entities, options);
  return { totalMs: performance.now() - startMs, p99Ms: quantileOf(timesMs, 0.99) };
}

for (let round = 0; round <= rounds; round++) {
  await manage("DISABLE");
  await drained(database);
  const none = await measure();
  await manage("ENABLE");
  await drained(database);
  // Nothing stands there yet: each of these models is followed by a write of properties.
  await server.call("modelcontext/customproperties:delete", {
    input: { query: { clause: { filter: { field: "name", operation: "OP_STARTS_WITH", value: "Web" } } } },
  });
  const hundred = await measure();
  const lagMs = await drained(database);
  if (round === 0) continue; // warm-up
  without.push(none);
  within.push({ ...hundred, lagMs });
}

const median = (values: number[]) => quantileOf(values, 0.5);
const perSec = (each: { totalMs: number }) => (entities / each.totalMs) * 1000;
const ratios = within.map((each, i) => each.totalMs / (without[i]?.totalMs ?? Number.NaN));
const fixed = (number: number) => number.toFixed(0);
console.log(
  `\n${table(
    ["", "models/s", "p99 ms", "slower by", "least–most", "applied after the last, ms"],
    [
      ["no updater", fixed(median(without.map(perSec))), fixed(median(without.map(({ p99Ms }) => p99Ms))), "", "", ""],
      [
        "100 updaters",
        fixed(median(within.map(perSec))),
        fixed(median(within.map(({ p99Ms }) => p99Ms))),
        median(ratios).toFixed(2),
        `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`,
        `${fixed(median(within.map(({ lagMs }) => lagMs)))}, at most ${fixed(Math.max(...within.map(({ lagMs }) => lagMs)))}`,
      ],
    ],
  )}`,
);
const [row] = await database.sql<[{ right: bigint }]>`
  select count(*) as right from entities
  where custom_properties ->> ('property ' || (substr(dimensions ->> 'rack', 6)::int % 20)) = 'value ' || substr(dimensions ->> 'rack', 6)`;
console.log(`${row.right} of ${entities} entities have the property that they should have.`);
