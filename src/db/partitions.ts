import type { Db, Sql } from "./connect.ts";
import { transaction } from "./transaction.ts";

/** A table partitioned by range of one bigint column, a time in ms. It has no default partition. */
export interface PartitionedTable {
  table: string;
  /** Each partition holds the times from a multiple of this (since the epoch) to the next. */
  widthMs: number;
  /** How far before now rows may still be stored, and how far after now there is room for them. */
  backMs: number;
  aheadMs: number;
  /** A partition is dropped when all that it may hold is older. At least `backMs`. */
  keepMs: number;
}

interface Partition {
  name: string;
  fromMs: number;
  /** Being taken off its table: that was cut off. */
  leaving: boolean;
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;

async function partitionsOf(sql: Sql, table: string): Promise<Partition[]> {
  const rows = await sql<{ name: string; bounds: string; leaving: boolean }[]>`
    select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bounds, i.inhdetachpending as leaving
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = to_regclass(${quoted(table)}::text)
    order by c.relname`;
  return rows.map(({ name, bounds, leaving }) => ({
    name,
    fromMs: Number(/FROM \('(-?\d+)'\)/.exec(bounds)?.[1]),
    leaving,
  }));
}

/** Those that were taken off their table, when a server died before it dropped them. */
async function leftBehind(sql: Sql, table: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = (select relnamespace from pg_class where oid = to_regclass(${quoted(table)}::text))
      and relkind = 'r' and not relispartition
      and relname like ${`${table}\\_%`}::text and substr(relname, ${table.length + 2}::int4) ~ '^[0-9]{8}(t[0-9]{4})?$'
    order by relname`;
  return rows.map(({ name }) => name);
}

/** `table_20261122` for partitions of days, `table_20261122t1300` for narrower ones. */
export function partitionName({ table, widthMs }: Pick<PartitionedTable, "table" | "widthMs">, fromMs: number): string {
  const text = new Date(fromMs).toISOString();
  const day = text.slice(0, 10).replaceAll("-", "");
  return widthMs % 86_400_000 === 0 ? `${table}_${day}` : `${table}_${day}t${text.slice(11, 16).replace(":", "")}`;
}

/** Made beside its table and then attached, which locks out neither readers nor writers. */
async function make(sql: Sql, wanted: PartitionedTable, fromMs: number): Promise<string> {
  const name = partitionName(wanted, fromMs);
  const [parent, partition] = [quoted(wanted.table), quoted(name)];
  await transaction(sql, async (tx) => {
    await tx.unsafe(`create table ${partition} (like ${parent} including all)`);
    await tx.unsafe(
      `alter table ${parent} attach partition ${partition} for values from (${fromMs}) to (${fromMs + wanted.widthMs})`,
    );
  });
  return name;
}

/** How long taking a partition off a distributed table waits for its lock, for which all others then wait, ms. */
const detachLockMs = 500;

/**
 * Detached concurrently, which waits for transactions that still read it and lets the others pass. Distributed tables know no such
 * way: there it is tried again in the next round when it does not get its lock soon.
 */
async function drop(sql: Sql, table: string, { name, leaving }: Partition): Promise<void> {
  const how = sql.distributed ? "" : leaving ? "finalize" : "concurrently";
  const detach = (db: Db) => db.unsafe(`alter table ${quoted(table)} detach partition ${quoted(name)} ${how}`);
  if (sql.distributed) {
    await transaction(sql, async (tx) => {
      await tx.unsafe(`set local lock_timeout = ${detachLockMs}`);
      await detach(tx);
    });
  } else await detach(sql);
  await sql.unsafe(`drop table if exists ${quoted(name)}`);
}

/** Where the partitions begin that rows from `backMs` before this time to `aheadMs` after it need. */
function beginsOf({ widthMs, backMs }: PartitionedTable, nowMs: number, aheadMs: number): number[] {
  const first = Math.floor((nowMs - backMs) / widthMs) * widthMs;
  const count = Math.floor((nowMs + aheadMs - first) / widthMs) + 1;
  return Array.from({ length: count }, (_, i) => first + i * widthMs);
}

/** Whether rows from `backMs` before now until now have their partitions. */
export async function hasPartitions(sql: Sql, wanted: PartitionedTable, nowMs: number): Promise<boolean> {
  const there = new Set((await partitionsOf(sql, wanted.table)).map(({ fromMs }) => fromMs));
  return beginsOf(wanted, nowMs, 0).every((fromMs) => there.has(fromMs));
}

/**
 * Makes the partitions that rows from `backMs` before now to `aheadMs` after now need, and drops those that hold only what
 * is older than `keepMs`. Returns the names of both. May be repeated, and be done by several servers at once.
 * @throws when a partition that is missing cannot be made, after all else was tried.
 */
export async function keepPartitions(
  sql: Sql,
  wanted: PartitionedTable,
  nowMs: number,
): Promise<{ made: string[]; dropped: string[] }> {
  const { table, widthMs, aheadMs, keepMs } = wanted;
  const there = await partitionsOf(sql, table);
  const failures: unknown[] = [];
  const [made, dropped]: [string[], string[]] = [[], []];
  for (const fromMs of beginsOf(wanted, nowMs, aheadMs)) {
    if (there.some((partition) => partition.fromMs === fromMs)) continue;
    try {
      made.push(await make(sql, wanted, fromMs));
    } catch (error) {
      // Another server may have made it meanwhile.
      if (!(await partitionsOf(sql, table)).some((partition) => partition.fromMs === fromMs)) failures.push(error);
    }
  }
  for (const partition of there.filter(({ fromMs, leaving }) => leaving || fromMs + widthMs <= nowMs - keepMs)) {
    try {
      await drop(sql, table, partition);
      dropped.push(partition.name);
    } catch (error) {
      // Another server may be dropping it.
      if ((await partitionsOf(sql, table)).some(({ name, leaving }) => name === partition.name && !leaving)) {
        failures.push(error);
      }
    }
  }
  for (const name of await leftBehind(sql, table)) {
    await sql.unsafe(`drop table if exists ${quoted(name)}`);
    dropped.push(name);
  }
  if (failures.length > 0) throw failures[0];
  return { made, dropped };
}
