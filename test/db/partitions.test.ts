import { expect, test } from "vitest";
import type { PartitionedTable } from "../../src/db/partitions.ts";
import { keepPartitions } from "../../src/db/partitions.ts";
import { partitionUpkeep } from "../../src/jobs/partition-upkeep.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();
const dayMs = 86_400_000;
const now = Date.UTC(2026, 10, 22, 13);
let tables = 0;

async function partitioned(options: Partial<PartitionedTable> = {}): Promise<PartitionedTable> {
  const table = `seen_${String.fromCharCode(97 + tables++)}`;
  await sql.unsafe(`create table ${table} (tenant_id uuid not null, time_ms bigint not null, primary key (tenant_id, time_ms))
    partition by range (time_ms)`);
  return { table, widthMs: dayMs, backMs: dayMs, aheadMs: dayMs, keepMs: 3 * dayMs, ...options };
}

const store = (table: string, timeMs: number) =>
  sql.unsafe(`insert into ${table} (tenant_id, time_ms) values ('00000000-0000-0000-0000-000000000001', ${timeMs})`);
const count = async (table: string) => (await sql.unsafe(`select count(*)::int4 as n from ${table}`))[0]?.n;

test("what may be stored now has its partition; once more makes none", async () => {
  const wanted = await partitioned();
  const { table } = wanted;
  expect(await keepPartitions(sql, wanted, now)).toEqual({
    made: ["20261121", "20261122", "20261123"].map((day) => `${table}_${day}`),
    dropped: [],
  });
  for (const days of [-1, 0, 1]) await store(table, now + days * dayMs);
  expect(await keepPartitions(sql, wanted, now)).toEqual({ made: [], dropped: [] });
  const narrow = await partitioned({ widthMs: dayMs / 4, backMs: 0, aheadMs: 0 });
  expect((await keepPartitions(sql, narrow, now)).made).toEqual([`${narrow.table}_20261122t1200`]);
});

test("what is too old goes with its partition, and nothing else; one that holds something younger stays", async () => {
  const wanted = await partitioned();
  const { table } = wanted;
  await keepPartitions(sql, wanted, now);
  for (const days of [-1, 0]) await store(table, now + days * dayMs);
  // The oldest may hold rows until the end of its day: three days later one of 13:00 to 24:00 is younger.
  expect((await keepPartitions(sql, wanted, now + 2 * dayMs)).dropped).toEqual([]);
  expect(await count(table)).toBe(2);
  expect((await keepPartitions(sql, wanted, now + 3 * dayMs)).dropped).toEqual([`${table}_20261121`]);
  expect(await count(table)).toBe(1);
  expect(await sql`select to_regclass(${`${table}_20261121`}) as found`).toEqual([{ found: null }]);
});

test("several servers may do so at once", async () => {
  const wanted = await partitioned({ backMs: 5 * dayMs, keepMs: 5 * dayMs });
  const rounds = await Promise.all(Array.from({ length: 4 }, () => keepPartitions(sql, wanted, now)));
  expect(rounds.flatMap(({ made }) => made)).toHaveLength(7);
  await Promise.all(Array.from({ length: 4 }, () => keepPartitions(sql, wanted, now + 9 * dayMs)));
  const left =
    await sql`select inhrelid::regclass::text as name from pg_inherits where inhparent = ${wanted.table}::regclass`;
  expect(left.map(({ name }) => name).sort()).toEqual(
    ["1126", "1127", "1128", "1129", "1130", "1201", "1202"].map((day) => `${wanted.table}_2026${day}`),
  );
});

test("neither readers nor writers of the table are locked out; a partition that is being read goes when it has been", async () => {
  const wanted = await partitioned();
  const { table } = wanted;
  await keepPartitions(sql, wanted, now);
  const reading = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const reader = sql.begin(async (tx) => {
    await tx.unsafe(`select count(*) from ${table}`);
    begun.resolve();
    await reading.promise;
  });
  await begun.promise;
  const round = keepPartitions(sql, wanted, now + 4 * dayMs);
  await expect
    .poll(() => sql`select 1 from pg_inherits where inhparent = ${table}::regclass and inhdetachpending`, {
      timeout: 10_000,
    })
    .toHaveLength(1);
  await store(table, now + 4 * dayMs);
  expect(await count(table)).toBe(1);
  reading.resolve();
  await reader;
  expect((await round).dropped).toHaveLength(2);
});

test("what a server left that died on the way is dropped by the next one", async () => {
  const wanted = await partitioned();
  const { table } = wanted;
  await keepPartitions(sql, wanted, now);
  await sql.unsafe(`alter table ${table} detach partition ${table}_20261121`);
  await sql.unsafe(`create table ${table}_kept (id int)`);
  expect((await keepPartitions(sql, wanted, now + dayMs)).dropped).toEqual([`${table}_20261121`]);
  expect(await sql`select to_regclass(${`${table}_kept`}) is null as gone`).toEqual([{ gone: false }]);
});

test("a partition that cannot be made is an error, after the others were", async () => {
  const wanted = await partitioned();
  await sql.unsafe(`create table ${wanted.table}_20261122 (id int)`);
  await sql.unsafe(`create view shown_${wanted.table} as select * from ${wanted.table}_20261122`);
  await expect(keepPartitions(sql, wanted, now)).rejects.toThrow(/already exists|depend/);
  await store(wanted.table, now + dayMs);
});

test("a server begins without a partition that only later rows need, and says so; not without one of now", async () => {
  const said: object[] = [];
  const log = { info: (fields: object) => void said.push(fields), error: (fields: object) => void said.push(fields) };
  const wanted = await partitioned();
  await sql.unsafe(`create view ${wanted.table}_20261123 as select 1`);
  const upkeep = await partitionUpkeep(sql, [wanted], () => now, log);
  await store(wanted.table, now);
  expect(said).toMatchObject([{ table: wanted.table, err: { message: expect.stringContaining("already exists") } }]);
  await upkeep.stop();
  const other = await partitioned();
  await sql.unsafe(`create view ${other.table}_20261122 as select 1`);
  await expect(partitionUpkeep(sql, [other], () => now, log)).rejects.toThrow("already exists");
});

test("a server has what it needs before it begins, without a word of it", async () => {
  const wanted = await partitioned();
  const said: object[] = [];
  const log = { info: (fields: object) => void said.push(fields), error: (fields: object) => void said.push(fields) };
  const upkeep = await partitionUpkeep(sql, [wanted], () => now, log);
  await store(wanted.table, now);
  expect(said).toEqual([]);
  await upkeep.stop();
});
