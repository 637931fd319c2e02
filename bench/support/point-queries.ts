import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { createTenant } from "../../src/auth/create-tenant.ts";
import type { Sql } from "../../src/db/connect.ts";
import { keepPartitions } from "../../src/db/partitions.ts";
import { transaction } from "../../src/db/transaction.ts";
import { downsample } from "../../src/metrics/aggregate.ts";
import { decodeChunk } from "../../src/metrics/codec/chunk.ts";
import { mergeHead } from "../../src/metrics/merge.ts";
import { noNotes } from "../../src/metrics/notes.ts";
import { batchBuilder } from "../../src/metrics/point-batch.ts";
import { seriesMemory } from "../../src/metrics/series-memory.ts";
import { storePoints } from "../../src/metrics/store.ts";
import { testStore } from "../../test/metrics/points.ts";
import { table } from "./table.ts";

const dayMs = 86_400_000;
const hourMs = 3_600_000;
const everyMs = 10_000;
/** The day that is asked for: whole in UTC. */
const dayStart = Math.floor(Date.now() / dayMs) * dayMs - dayMs;

const p50 = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const store = testStore({ memory: seriesMemory(2 ** 30), seriesMax: 10_000_000 });

interface Series {
  metric: string;
  dimensions: Record<string, string>;
  valueOf(i: number): number;
}

/** Stores a point every 10 s of each series from one time to another, and merges them as the server does. */
async function fill(sql: Sql, tenantId: string, all: readonly Series[], fromMs: number, toMs: number) {
  const pointsMax = 200_000;
  const steps = Math.max(1, Math.floor(pointsMax / all.length));
  for (let start = fromMs; start < toMs; start += steps * everyMs) {
    const endMs = Math.min(toMs, start + steps * everyMs);
    const builder = batchBuilder(
      store.memory.of(tenantId),
      tenantId,
      all.length * Math.ceil((endMs - start) / everyMs),
      Date.now(),
    );
    for (const { metric, dimensions, valueOf } of all) {
      for (let timeMs = start; timeMs < endMs; timeMs += everyMs) {
        const value = valueOf((timeMs - fromMs) / everyMs);
        builder.add({ metric, dimensions, ...noNotes }, timeMs, value);
      }
    }
    const batch = builder.batch();
    await transaction(sql, async (tx) => {
      await storePoints(store, tx, tenantId, [batch], Date.now());
      // Merging is done here, so not by the server.
      await tx`delete from jobs where tenant_id = ${tenantId}`;
    });
    await transaction(sql, (tx) => mergeHead(tx, tenantId, Date.now()));
  }
  const nowMs = Date.now();
  for (let next = nowMs; next <= nowMs; ) next = await transaction(sql, (tx) => mergeHead(tx, tenantId, nowMs, true));
}

const uniform = () => Math.round(Math.random() * 10_000) / 100;

function walk() {
  let value = 50;
  return () => {
    const normal = Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
    // Plus 0: a sensor has no -0.
    value = Math.round((value + 0.5 * normal) * 100) / 100 + 0;
    return value;
  };
}

function counter() {
  let value = 0;
  return () => {
    value += Math.floor(Math.random() * 100);
    return value;
  };
}

interface Asked {
  sql: Sql;
  url: string;
  key: Record<string, string>;
  /** Series of which a day is stored. */
  stored: number;
}

/** What searches take over the API, beside the same in SQL over a row a point. */
export async function* queryLines({ sql, url, key, stored }: Asked): AsyncGenerator<string> {
  await sql`set statement_timeout = 0`;
  const [tenant] = await sql<[{ id: string }]>`select id from tenants order by id limit 1`;
  const { id } = tenant;
  await keepPartitions(
    sql,
    { table: "metric_chunks", widthMs: 30 * dayMs, backMs: 40 * dayMs, aheadMs: dayMs, keepMs: 400 * dayMs },
    dayStart,
  );
  const series = (host: string, count: number): Series[] =>
    Array.from({ length: count }, (_, i) => ({
      metric: `m${i}`,
      dimensions: { source: host, zone: "b" },
      valueOf: uniform,
    }));
  const hosts = Math.ceil(stored / 100);
  const day = Array.from({ length: hosts }, (_, host) => series(`host ${host}`, 100)).flat();
  await fill(sql, id, day, dayStart, dayStart + dayMs);
  const months = series("month", 10);
  await fill(sql, id, months, dayStart - 29 * dayMs, dayStart + dayMs);
  await sql`
    create table plain_day (series int8 not null, time_ms int8 not null, value float8 not null, primary key (series, time_ms))`;
  await sql`
    insert into plain_day select s, ${BigInt(dayStart)} + t * ${BigInt(everyMs)}, round((random() * 100)::numeric, 2)
    from generate_series(1, 100) s, generate_series(0, 8639) t`;
  await sql`vacuum analyze plain_day`;

  const search = async (host: string, metric: string | undefined, startMs: number, endMs: number) => {
    const clause = (field: string, value: string) => ({ filter: { field, operation: "OP_EQUALS", value } });
    const body = JSON.stringify({
      entityClause: clause("source", host),
      ...(metric !== undefined && { metricClause: clause("name", metric) }),
      timeRange: { start: new Date(startMs).toISOString(), end: new Date(endMs).toISOString() },
      downsample: { aggregator: "MEAN", period: "1h" },
    });
    const headers = { ...key, "content-type": "application/json" };
    const response = await fetch(`${url}/v1/metrics:search`, { method: "POST", headers, body });
    const { metrics } = (await response.json()) as { metrics: { values: number[] }[] };
    return metrics.reduce((sum, each) => sum + each.values.length, 0);
  };
  const plain = (count: number, fromMs: number, toMs: number) => sql`
    select series, time_ms / ${BigInt(hourMs)} as hour, avg(value) from plain_day
    where series = any(array(select generate_series(1, ${count}::int))) and time_ms >= ${BigInt(fromMs)}
      and time_ms < ${BigInt(toMs)} group by series, hour order by series, hour`;
  const endMs = dayStart + dayMs;
  const asks = {
    [`a day by the hour, one of ${day.length} series`]: () => search("host 0", "m7", dayStart, endMs),
    "30 days by the hour, one of 10 series": () => search("month", "m7", dayStart - 29 * dayMs, endMs),
    "an hour of 100 series of one entity": () => search("host 0", undefined, endMs - hourMs, endMs),
    "SQL over rows: a day by the hour, one series": async () => (await plain(1, dayStart, endMs)).length,
    "SQL over rows: an hour of 100 series": async () => (await plain(100, endMs - hourMs, endMs)).length,
  };
  const rows: string[][] = [];
  for (const [name, ask] of Object.entries(asks)) {
    const took: number[] = [];
    let found = 0;
    for (let i = 0; i < 500; i++) {
      const startMs = performance.now();
      found = await ask();
      if (i >= 400) took.push(performance.now() - startMs);
    }
    if (found === 0) throw new Error(`${name}: nothing was found`);
    rows.push([name, p50(took).toFixed(2), String(found)]);
  }
  const [chunk] = await sql<[{ chunk: Buffer }]>`
    select chunk from metric_chunks where tenant_id = ${id} and first_ms = ${BigInt(dayStart)} limit 1`;
  const how = { aggregator: Aggregator.MEAN, periodMs: hourMs, startMs: dayStart, endMs, isRate: false };
  const took = Array.from({ length: 300 }, () => {
    const startMs = performance.now();
    downsample(decodeChunk(chunk.chunk), how);
    return performance.now() - startMs;
  });
  rows.push(["the day's points decoded and aggregated, without network and database", p50(took).toFixed(3), "24"]);
  yield `\n${table(["", "p50 ms", "values"], rows)}\n`;
  yield "aims: the day 5 ms end to end and 0.4 ms without network and database; 30 days at most 10 times the day";
}

/** Bytes a point on disk, a day of points every 10 s of 100 series each; table, index and all. */
export async function* sizeLines(sql: Sql): AsyncGenerator<string> {
  const kinds = [
    ["uniform, 0.00 to 100.00", () => uniform, 2.0],
    ["walk of normal steps, σ 0.50, two decimals", walk, 1.2],
    ["counter with increments of 0 to 99", counter, 1.0],
  ] as const;
  await sql`set statement_timeout = 0`;
  await sql`delete from metric_chunks`;
  const rows: string[][] = [];
  const counts: number[] = [];
  const size = async () => {
    const [row] = await sql<[{ bytes: number }]>`
      select sum(pg_total_relation_size(inhrelid))::float8 as bytes from pg_inherits
      where inhparent = 'metric_chunks'::regclass`;
    return row.bytes;
  };
  for (const [name, valueOf, aim] of kinds) {
    await sql.unsafe("vacuum full metric_chunks");
    const before = await size();
    const { id } = await createTenant(sql, name);
    const all = Array.from({ length: 100 }, (_, i) => ({
      metric: `m${i}`,
      dimensions: { source: "a" },
      valueOf: valueOf(),
    }));
    await fill(sql, id, all, dayStart, dayStart + dayMs);
    const [{ points, bytes }] = await sql<[{ points: number; bytes: number }]>`
      select sum(points)::float8 as points, sum(length(chunk))::float8 as bytes from metric_chunks where tenant_id = ${id}`;
    await sql.unsafe("vacuum full metric_chunks");
    const whole = (await size()) - before;
    counts.push(points);
    rows.push([name, (whole / points).toFixed(2), (bytes / points).toFixed(2), aim.toFixed(1)]);
  }
  yield `\n${table(["bytes a point", "on disk", "chunks alone", "aim"], rows)}`;
  yield `${counts.join(", ")} points; on disk: tables, indexes and TOAST after vacuum full`;
}
