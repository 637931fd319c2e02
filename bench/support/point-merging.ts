import { createTenant } from "../../src/auth/create-tenant.ts";
import type { Sql } from "../../src/db/connect.ts";
import { keepPartitions } from "../../src/db/partitions.ts";
import { transaction } from "../../src/db/transaction.ts";
import { writeHead } from "../../src/metrics/head.ts";
import { mergeHead } from "../../src/metrics/merge.ts";
import { postgresCpuMs } from "./machine.ts";
import { table } from "./table.ts";

const dayMs = 86_400_000;
const perSec = 10;
const windowSec = 30;

/** What merging has taken so far: s of processor of this process and of PostgreSQL, MB of its log, rows of chunks. */
interface Taken {
  node: number;
  postgres: number;
  logMb: number;
  written: number;
  deleted: number;
}

async function taken(sql: Sql, pid: number | undefined): Promise<Taken> {
  await sql`select pg_stat_force_next_flush()`;
  await sql`select 1`;
  const [row] = await sql<[{ logMb: number; written: number; deleted: number }]>`
    select (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 / 1e6 as "logMb",
      sum(n_tup_ins + n_tup_upd)::float8 as written, sum(n_tup_del)::float8 as deleted
    from pg_stat_user_tables where relid in (select inhrelid from pg_inherits where inhparent = 'metric_chunks'::regclass)`;
  const { user, system } = process.cpuUsage();
  return { ...row, node: (user + system) / 1e6, postgres: postgresCpuMs(pid) / 1000 };
}

async function writeSecond(sql: Sql, tenantId: string, series: Float64Array, baseMs: number) {
  for (let i = 0; i < perSec; i++) {
    const times = new Float64Array(series.length).fill(baseMs + i * 1000);
    const values = series.map(() => Math.round(Math.random() * 10_000) / 100);
    await transaction(sql, (tx) => writeHead(tx, tenantId, { series, times, values }));
  }
}

/**
 * What merging takes a million points while ten points a second of each series come, in windows of this many s: the same
 * points in the same order each time, so that the figures tell of a busy machine, too.
 */
export async function mergingTable(sql: Sql, pid: number | undefined, count: number, windows: number): Promise<string> {
  await sql`set statement_timeout = 0`;
  const { id } = await createTenant(sql, "merging");
  const baseMs = Math.floor(Date.now() / dayMs) * dayMs - dayMs;
  const partitions = {
    table: "metric_chunks",
    widthMs: 30 * dayMs,
    backMs: 2 * dayMs,
    aheadMs: dayMs,
    keepMs: 400 * dayMs,
  };
  await keepPartitions(sql, partitions, Date.now());
  const series = Float64Array.from({ length: count }, (_, i) => i + 1);
  const rows: string[][] = [];
  for (let window = 0; window < windows; window++) {
    const sum: Taken = { node: 0, postgres: 0, logMb: 0, written: 0, deleted: 0 };
    for (let second = 0; second < windowSec; second++) {
      await writeSecond(sql, id, series, baseMs + (window * windowSec + second) * perSec * 1000);
      const before = await taken(sql, pid);
      const nowMs = Date.now();
      for (let next = nowMs; next <= nowMs; ) next = await transaction(sql, (tx) => mergeHead(tx, id, nowMs));
      const after = await taken(sql, pid);
      for (const key of Object.keys(sum) as (keyof Taken)[]) sum[key] += after[key] - before[key];
    }
    const millions = (count * perSec * windowSec) / 1e6;
    const each = (value: number, digits: number) => (value / millions).toFixed(digits);
    const { node, postgres, logMb, written, deleted } = sum;
    rows.push([
      `to ${(window + 1) * windowSec} s`,
      each(node, 2),
      each(postgres, 2),
      each(logMb, 1),
      each(written, 0),
      each(deleted, 0),
    ]);
  }
  const title = `merging, a million points of ${count} series`;
  return `\n${table([title, "server CPU s", "PostgreSQL CPU s", "log MB", "chunks written", "deleted"], rows)}\n`;
}
