// Ways to index the fields of entities, over the same rows: what each finds how soon, takes, and adds to a write.
import type { Fragment } from "postgres";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Comparison } from "../src/clause/field.ts";
import { connectOnce } from "../src/db/connect.ts";
import { entityResolver } from "../src/entities/fields.ts";
import { entityId } from "../src/entities/identity.ts";
import { startDatabase } from "./support/database.ts";
import { type MadeEntity, madeEntities, rackNames, rackSize, seeded } from "./support/entities.ts";
import { dropIndexes, fillEntities, insertEntities } from "./support/entity-table.ts";
import { machineFacts } from "./support/machine.ts";
import { commandOf, settingsOf } from "./support/settings.ts";
import { table } from "./support/table.ts";

/** What is asked: values of a dimension, its beginning, what it holds, bounds of a number. */
const kinds = ["equality", "prefix", "contains", "range"] as const;
type Kind = (typeof kinds)[number];

interface Design {
  name: string;
  make: readonly string[];
  drop: readonly string[];
  /** What its indexes answer of a question; absent: nothing, so that each row is read. */
  asks: Partial<Record<Kind, (rack: number) => Fragment>>;
  /** What has to be written beside the rows of these ids. */
  beside?: (ids: readonly Buffer[]) => Promise<unknown>;
}

const args = process.argv.slice(2);
const { size = 200_000 } = settingsOf(args, { rounds: 1, countMs: 1 });
const askedMs = 3000;
const written = 2000;
const batch = 100;

await using stack = new AsyncDisposableStack();
process.once("SIGINT", () => void stack.disposeAsync().finally(() => process.exit(130)));
const database = stack.use(await startDatabase());
const { sql: db, close } = connectOnce(database.env.DATABASE_URL ?? "", "bench");
stack.defer(close);
await db`set max_parallel_workers_per_gather = 0`; // as the product's pool
await db`set jit = off`;
const [tenant] = await db<{ id: string }[]>`select id from tenants`;
const owner = tenant?.id ?? "";

console.log(`${commandOf("indexes", args)}\n`);
for (const line of machineFacts(database.version)) console.log(line);
await fillEntities(db, owner, size);
const chosen = await dropIndexes(db, "% gin %");

const nameOf = (rack: number) => rackNames(rack).name;
const costOf = (rack: number) => 1000 + (rack % Math.floor(size / 20 - 3));
/** The questions as they are of each row; `asks` come before them. */
const exact: Record<Kind, (rack: number) => Fragment> = {
  equality: (rack) => db`dimensions ->> 'rack' = ${rackNames(rack).rack}::text`,
  prefix: (rack) => db`starts_with(dimensions ->> 'source', ${nameOf(rack)}::text)`,
  contains: (rack) => db`strpos(dimensions ->> 'source', ${nameOf(rack).slice(2)}::text) > 0`,
  range: (rack) => db`custom_properties -> 'costCenter' >= to_jsonb(${costOf(rack)}::int4)
    and custom_properties -> 'costCenter' < to_jsonb(${costOf(rack) + 4}::int4)`,
};

function product(key: string, comparisons: (rack: number) => Comparison[]) {
  const field = entityResolver(owner).field(key);
  return (rack: number) => field?.index?.(db, comparisons(rack))?.sql ?? db`true`;
}

const text = db`entity_text(dimensions, core_properties, custom_properties)`;
const holds = (part: string) => db`${text} like ${`%${part}%`}::text`;
const ofFields = (condition: Fragment) =>
  db`id in (select id from entity_fields where tenant_id = ${owner} and ${condition})`;
const fieldsOf = (which: string) => `
  insert into entity_fields
  select tenant_id, 'd.' || key, value, null, id from entities, jsonb_each_text(dimensions) where ${which}
  union all select tenant_id, 'c.' || key, item #>> '{}', case when jsonb_typeof(item) = 'number' then item::float8 end, id
  from entities, jsonb_each(custom_properties), jsonb_path_query(value, '$[*]') as item where ${which}`;

const designs: Design[] = [
  { name: "none", make: [], drop: [], asks: {} },
  {
    name: "GIN over terms, trigrams of texts",
    make: chosen.map((index) => index.text),
    drop: chosen.map(({ name }) => `drop index ${name}`),
    asks: {
      equality: product("dimensions.rack", (rack) => [{ operation: Operation.OP_EQUALS, value: rackNames(rack).rack }]),
      prefix: product("dimensions.source", (rack) => [{ operation: Operation.OP_STARTS_WITH, value: nameOf(rack) }]),
      contains: product("dimensions.source", (rack) => [
        { operation: Operation.OP_CONTAINS, value: nameOf(rack).slice(2) },
      ]),
      range: product("customProperties.costCenter", (rack) => [
        { operation: Operation.OP_GREATER_OR_EQ, value: costOf(rack) },
        { operation: Operation.OP_LESS, value: costOf(rack) + 4 },
      ]),
    },
  },
  {
    name: "GIN jsonb_path_ops",
    make: ["dimensions", "custom_properties"].map(
      (column) => `create index by_${column} on entities using gin (tenant_id, ${column} jsonb_path_ops)`,
    ),
    drop: ["drop index by_dimensions", "drop index by_custom_properties"],
    asks: { equality: (rack) => db`dimensions @> ${JSON.stringify({ rack: rackNames(rack).rack })}::text::jsonb` },
  },
  {
    name: "trigrams alone",
    make: [
      "create index by_text on entities using gin (tenant_id, entity_text(dimensions, core_properties, custom_properties) gin_trgm_ops)",
    ],
    drop: ["drop index by_text"],
    asks: {
      equality: (rack) => holds(`"rack": "${rackNames(rack).rack}"`),
      prefix: (rack) => holds(`"source": "${nameOf(rack)}`),
      contains: (rack) => holds(nameOf(rack).slice(2)),
    },
  },
  {
    name: "a row a field",
    make: [
      'create table entity_fields (tenant_id uuid, field text collate "C", value text collate "C", number float8, id bytea)',
      fieldsOf("true"),
      "create index on entity_fields (tenant_id, field, value, id)",
      "create index on entity_fields (tenant_id, field, number, id) where number is not null",
      "vacuum analyze entity_fields",
    ],
    drop: ["drop table entity_fields"],
    asks: {
      equality: (rack) => ofFields(db`field = 'd.rack' and value = ${rackNames(rack).rack}::text`),
      prefix: (rack) => ofFields(db`field = 'd.source' and value like ${`${nameOf(rack)}%`}::text`),
      range: (rack) =>
        ofFields(db`field = 'c.costCenter' and number >= ${costOf(rack)}::int4 and number < ${costOf(rack) + 4}::int4`),
    },
    beside: (ids) =>
      db.unsafe(fieldsOf("id = any(string_to_array($1, ',')::bytea[])"), [
        ids.map((id) => `\\x${id.toString("hex")}`).join(","),
      ]),
  },
];

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

async function ask(kind: Kind, { asks }: Design): Promise<number> {
  const random = seeded(7);
  const timesMs: number[] = [];
  const untilMs = performance.now() + askedMs;
  for (let i = 0; i < 400 && (i < 5 || performance.now() < untilMs); i++) {
    const rack = Math.floor(random() * (size / rackSize));
    const found = asks[kind]?.(rack) ?? db`true`;
    const startMs = performance.now();
    await db`select id, name from entities where tenant_id = ${owner} and deleted_ms is null and ${found} and ${exact[kind](rack)}`;
    timesMs.push(performance.now() - startMs);
  }
  return median(timesMs);
}

/** Bytes of what a design adds, and of what every table has. */
async function bytes(): Promise<number> {
  const [row] = await db<[{ bytes: bigint }]>`
    select (pg_indexes_size('entities') + coalesce(pg_total_relation_size(to_regclass('entity_fields')), 0))::int8 as bytes`;
  return Number(row.bytes);
}

/** What a new entity takes to be written, ms: a hundred a transaction, and what indexes have put off. */
async function write({ beside }: Design, entities: readonly MadeEntity[]): Promise<number> {
  await db`checkpoint`;
  const startMs = performance.now();
  for (let from = 0; from < entities.length; from += batch) {
    const part = entities.slice(from, from + batch);
    const ids = part.map(({ dimensions }) => entityId(owner, dimensions));
    await db`begin`;
    await insertEntities(db, owner, part, ids);
    await beside?.(ids);
    await db`commit`;
  }
  await db`
    select gin_clean_pending_list(indexrelid) from pg_index join pg_class on pg_class.oid = indexrelid
    where indrelid = 'entities'::regclass and relam = (select oid from pg_am where amname = 'gin')`;
  return (performance.now() - startMs) / entities.length;
}

const fresh = [...madeEntities(written, 2)];
await db`vacuum analyze entities`;
const plainBytes = await bytes();
const rows: string[][] = [];
for (const design of designs) {
  for (const statement of design.make) await db.unsafe(statement);
  const added = ((await bytes()) - plainBytes) / size;
  const found: number[] = [];
  for (const kind of kinds) found.push(await ask(kind, design));
  const writeMs = await write(design, fresh);
  rows.push([design.name, ...found.map((ms) => ms.toFixed(2)), added.toFixed(0), (writeMs * 1000).toFixed(0)]);
  for (const statement of design.drop) await db.unsafe(statement);
  const ids = fresh.map(({ dimensions }) => `\\x${entityId(owner, dimensions).toString("hex")}`);
  await db`delete from entities where id = any(string_to_array(${ids.join(",")}::text, ',')::bytea[])`;
  await db`vacuum entities`;
}
const head = ["", ...kinds.map((kind) => `${kind} ms`), "bytes an entity", "write µs an entity"];
console.log(`\n${size} entities; medians\n${table(head, rows)}`);
