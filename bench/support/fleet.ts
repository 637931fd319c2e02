import { setTimeout as sleep } from "node:timers/promises";
import { int4Array } from "../../src/db/batch.ts";
import { connectOnce } from "../../src/db/connect.ts";
import type { LoadRequest } from "../load/load.ts";
import { type Child, startChild } from "./child.ts";
import { type Database, startDatabase, tenantKey } from "./database.ts";
import { startGenerator } from "./generator.ts";
import { postgresCpuMs } from "./machine.ts";
import { progress } from "./progress.ts";

/** What generators ask: one request each, of `count` items. */
export interface Work {
  requests: readonly LoadRequest[];
  connections: number;
  count: number;
}

/** What one measurement came to, items being what is counted. */
export interface FleetOutcome {
  itemsPerSec: number;
  /** The longest of the generators'; of those that had an answer in time. */
  p99Ms: number;
  /** Answers that were not good. */
  refused: number;
  /** Items of good answers, those before and after the counting too. */
  stored: number;
  /** Time of processor for an item, µs: of all servers together, and of PostgreSQL. */
  serverUs: number;
  postgresUs: number;
  /** Connections of servers that wait for a lock of another, on average. */
  waiting: number;
}

/** What servers take while no one asks anything, each second. */
export interface Idle {
  serverMs: number;
  postgresMs: number;
  transactions: number;
}

/** Servers on one database, and as many generators, each with a connection of its own to each of them. */
export interface Fleet extends AsyncDisposable {
  database: Database;
  servers: readonly { child: Child; port: number }[];
  /** The headers of keys, of as many tenants as there are generators. */
  keys: readonly Record<string, string>[];
  /** Lets all generators work for a time on the first `count` servers, in turns. */
  run(work: Work, count: number, countMs: number): Promise<FleetOutcome>;
  /** Waits until the servers have no more work of their own, 10 s at most. */
  rest(): Promise<void>;
  idle(forMs: number): Promise<Idle>;
  /** Connections to PostgreSQL of all servers now, by what they are for. */
  connections(): Promise<Map<string, number>>;
  /** Bytes of a row on disk with its indexes, by table. */
  sizes(tables: readonly string[]): Promise<Map<string, number>>;
  /** Resident memory of each server, MB. */
  memory(): Promise<number[]>;
}

/** Starts `size` servers on one database, which all share the processors with PostgreSQL and the generators. */
export async function startFleet(size: number): Promise<Fleet> {
  await using starting = new AsyncDisposableStack();
  const database = starting.use(await startDatabase("shared"));
  const keys = [database.key];
  while (keys.length < size) keys.push(await tenantKey(database.sql, `bench ${keys.length}`));
  const { sql, close } = connectOnce(database.env.DATABASE_URL ?? "", "bench");
  starting.defer(close);
  // Those of the database's own pool here, which are called as those of servers are.
  const own = await sql<{ pid: number }[]>`select pid from pg_stat_activity where application_name like 'belfry%'`;
  const servers: { child: Child; port: number }[] = [];
  for (let i = 0; i < size; i++) {
    const child = starting.use(startChild("shared", "servers/belfry.ts", database.env));
    servers.push({ child, ...(await child.ask<{ port: number }>()) });
  }
  const generators = servers.map(() => starting.use(startGenerator("node", true, "shared")));

  const usages = () => Promise.all(servers.map(({ child }) => child.ask<{ cpuUs: number; rssBytes: number }>("cpu")));
  async function cpu() {
    const server = (await usages()).reduce((sum, { cpuUs }) => sum + cpuUs, 0);
    return { server, postgres: postgresCpuMs(database.pid) * 1000 };
  }

  /** Looks until `over` says so; returns how many connections wait for a lock on average. */
  async function waitingUntil(over: () => boolean): Promise<number> {
    let looks = 0;
    let waiting = 0;
    while (!over()) {
      const [row] = await sql<[{ count: number }]>`
        select count(*)::int4 as count from pg_stat_activity
        where wait_event_type = 'Lock' and application_name like 'belfry%'`;
      waiting += row.count;
      looks += 1;
      await sleep(20);
    }
    return waiting / looks;
  }

  async function run({ requests, connections, count: items }: Work, count: number, countMs: number) {
    progress(`a load on ${count} of ${size} servers`);
    const before = await cpu();
    let over = false;
    const looking = waitingUntil(() => over);
    const outcomes = await Promise.all(
      generators.map((generator, i) => {
        const { port } = servers[i % count] as { port: number };
        const request = requests[i] as LoadRequest;
        return generator.run({ port, request, connections, streams: 1, leadInMs: 200, countMs });
      }),
    ).finally(() => {
      over = true;
    });
    const after = await cpu();
    const stored = outcomes.reduce((sum, { answered, bad }) => sum + answered - bad, 0) * items;
    return {
      itemsPerSec: outcomes.reduce((sum, { perSec }) => sum + perSec, 0) * items,
      p99Ms: Math.max(...outcomes.map(({ p99Ms }) => p99Ms).filter(Number.isFinite)),
      refused: outcomes.reduce((sum, { bad }) => sum + bad, 0),
      stored,
      serverUs: (after.server - before.server) / stored,
      postgresUs: (after.postgres - before.postgres) / stored,
      waiting: await looking,
    };
  }

  const running = starting.move();
  return {
    database,
    servers,
    keys,
    run,
    async rest() {
      let { server } = await cpu();
      for (let i = 0; i < 20; i++) {
        await sleep(500);
        const now = (await cpu()).server;
        if (now - server < 30_000 * size) return;
        server = now;
      }
    },
    async idle(forMs) {
      const transactions = async () => {
        const [row] = await sql<[{ count: number }]>`
          select xact_commit::float8 as count from pg_stat_database where datname = current_database()`;
        return row.count;
      };
      const [cpuBefore, before] = [await cpu(), await transactions()];
      await sleep(forMs);
      const [cpuAfter, after] = [await cpu(), await transactions()];
      const each = (number: number) => number / size / (forMs / 1000);
      return {
        serverMs: each((cpuAfter.server - cpuBefore.server) / 1000),
        postgresMs: each((cpuAfter.postgres - cpuBefore.postgres) / 1000),
        transactions: each(after - before),
      };
    },
    async connections() {
      const rows = await sql<{ name: string; count: number }[]>`
        select application_name as name, count(*)::int4 as count from pg_stat_activity
        where application_name like 'belfry%' and pid <> all(${int4Array(own.map(({ pid }) => pid))}::int4[])
        group by 1 order by 1`;
      return new Map(rows.map(({ name, count }) => [name, count]));
    },
    async sizes(tables) {
      const bytes = new Map<string, number>();
      for (const table of tables) {
        const [row] = await sql<[{ bytes: number }]>`
          select pg_total_relation_size(${table}::text::regclass)::float8 / count(*) as bytes from ${sql(table)}`;
        bytes.set(table, row.bytes);
      }
      return bytes;
    },
    async memory() {
      return (await usages()).map(({ rssBytes }) => rssBytes / 1e6);
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
