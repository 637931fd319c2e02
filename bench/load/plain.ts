// A process that stores rows in the plainest way, in tables of its own: takes a PlainLoad as message, answers with its Outcome.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { bigintArray, boolArray, byteaArray, int4Array, jsonArray, textArray } from "../../src/db/batch.ts";
import { addressOptions, clientOptions } from "../../src/db/connect.ts";
import { eventIds } from "../../src/entities/identity.ts";
import { type Outcome, quantile } from "./load.ts";

/** What is stored, over this many connections, each of which waits for its answer. */
export interface PlainLoad {
  url: string;
  /** One row, committed by itself or by three statements; or 1,000 events by three statements. */
  what: "insert" | "begin; insert; commit" | "three statements";
  connections: number;
  leadInMs: number;
  countMs: number;
}

const tenantId = randomUUID();
const batch = 1000;
const batches = 16;
let sequence = 0;
const startMs = Date.now() - 24 * 3_600_000;

/** The columns of 1,000 events that do not change, in the order of their keys. */
function columnsOf(set: number) {
  const rows = Array.from({ length: batch }, (_, i) => {
    const host = `web-${String(set * batch + i).padStart(8, "0")}`;
    return eventIds(tenantId, { host, service: "checkout" }, "disk almost full");
  }).sort((a, b) => Buffer.compare(a.eventId, b.eventId));
  const all = <T>(value: T) => rows.map(() => value);
  return {
    ids: byteaArray(rows.map(({ eventId }) => eventId)),
    entityIds: byteaArray(rows.map(({ entityId }) => entityId)),
    names: textArray(all("disk almost full")),
    ones: int4Array(all(1)),
    states: int4Array(all(5)),
    acknowledged: boolArray(all(false)),
    types: textArray(all("disk")),
    summaries: textArray(all("97 % of /var is used")),
    bodies: textArray(all("")),
    metadata: jsonArray(all({ mount: "/var", usedPercent: 97 })),
  };
}

let columns: ReturnType<typeof columnsOf>[] | undefined;

async function threeStatements(sql: postgres.Sql<{ bigint: bigint }>) {
  columns ??= Array.from({ length: batches }, (_, set) => columnsOf(set));
  const timeMs = BigInt(startMs + ++sequence);
  const c = columns[sequence % batches] as (typeof columns)[number];
  const times = bigintArray(Array.from({ length: batch }, () => timeMs));
  await sql.begin(async (tx) => {
    await tx`
      insert into plain.events (tenant_id, id, entity_id, name)
      select ${tenantId}::uuid, * from unnest(${c.ids}::bytea[], ${c.entityIds}::bytea[], ${c.names}::text[])
      on conflict do nothing`;
    await tx`
      insert into plain.occurrences as o (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body,
        metadata, start_ms, last_seen_ms, instance_count)
      select ${tenantId}::uuid, *, 1 from unnest(${c.ids}::bytea[], ${c.ones}::int4[], ${c.states}::int4[], ${c.ones}::int4[],
        ${c.acknowledged}::bool[], ${c.types}::text[], ${c.summaries}::text[], ${c.bodies}::text[], ${c.metadata}::jsonb[],
        ${times}::int8[], ${times}::int8[])
      on conflict (tenant_id, event_id, number) do update set severity = excluded.severity, status = excluded.status,
        type = excluded.type, summary = excluded.summary, body = excluded.body, metadata = excluded.metadata,
        last_seen_ms = excluded.last_seen_ms, instance_count = o.instance_count + 1`;
    await tx`
      insert into plain.instances (tenant_id, event_id, time_ms, severity, status, number)
      select ${tenantId}::uuid, * from unnest(${c.ids}::bytea[], ${times}::int8[], ${c.states}::int4[], ${c.ones}::int4[],
        ${c.ones}::int4[])
      on conflict do nothing`;
  });
}

const id = eventIds(tenantId, { host: "web-1" }, "disk almost full").eventId;
const insert = (db: postgres.ISql<{ bigint: bigint }>) => db`
  insert into plain.instances (tenant_id, event_id, time_ms, severity, status, number)
  values (${tenantId}, ${id}, ${BigInt(startMs + ++sequence)}, 5, 1, 1)`;

async function run({ url, what, connections, leadInMs, countMs }: PlainLoad): Promise<Outcome> {
  const clients = Array.from({ length: connections }, () =>
    postgres(url, { ...clientOptions, ...addressOptions(url), max: 1 } as object),
  ) as unknown as postgres.Sql<{ bigint: bigint }>[];
  const once = {
    insert,
    "begin; insert; commit": (sql: (typeof clients)[number]) => sql.begin((tx) => insert(tx)),
    "three statements": threeStatements,
  }[what];
  const times: number[] = [];
  let counting = false;
  let going = true;
  let answered = 0;
  const all = clients.map(async (sql) => {
    while (going) {
      const sentMs = performance.now();
      await once(sql);
      answered += 1;
      if (counting) times.push(performance.now() - sentMs);
    }
  });
  const failed = Promise.all(all);
  await Promise.race([sleep(leadInMs), failed]);
  counting = true;
  const fromMs = performance.now();
  await Promise.race([sleep(countMs), failed]);
  counting = false;
  const elapsedMs = performance.now() - fromMs;
  going = false;
  await failed;
  await Promise.all(clients.map((sql) => sql.end()));
  const sorted = Float64Array.from(times).sort();
  const perSec = (times.length / elapsedMs) * 1000;
  return { perSec, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99), answered, bad: 0, busy: undefined };
}

process.on("message", async (load: PlainLoad) => {
  try {
    process.send?.({ outcome: await run(load) });
  } catch (error) {
    process.send?.({ error: (error as Error).message });
  }
});
process.on("disconnect", () => process.exit(0));
