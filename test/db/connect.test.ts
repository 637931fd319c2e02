import { integer, pgTable } from "drizzle-orm/pg-core";
import { expect, test } from "vitest";
import { jsonb, text } from "../../src/db/columns.ts";
import { connectionCounts } from "../../src/db/connect.ts";
import { orm } from "../../src/db/orm.ts";
import { transaction } from "../../src/db/transaction.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();

test("each kind of work has a connection, and all have together as many as were set", () => {
  for (let max = 5; max <= 1000; max += 1) {
    const counts = Object.values(connectionCounts(max));
    expect(Math.min(...counts), `of ${max}`).toBeGreaterThanOrEqual(1);
    expect(
      counts.reduce((sum, count) => sum + count),
      `of ${max}`,
    ).toBe(max);
  }
});

test.each([1, 2, 8, 64])("no kind of work has fewer connections of more, with %i processors", (processors) => {
  let before = connectionCounts(5, processors);
  for (let max = 6; max <= 1000; max += 1) {
    const counts = connectionCounts(max, processors);
    for (const name of Object.keys(counts) as (keyof typeof counts)[])
      expect(counts[name], `${name} of ${max}`).toBeGreaterThanOrEqual(before[name]);
    before = counts;
  }
});

test("numbers of 64 bits, bytes, JSON and arrays come back as they went in", async () => {
  const [row] = await sql`
    select ${9_007_199_254_740_993n}::bigint as n, ${Buffer.from([0, 255])}::bytea as b,
      ${sql.json({ a: [1, null, "x"] })}::jsonb as j, array['a b', null, 'c"\\d'] as t, array[1::bigint] as ns,
      ${true}::boolean as t2, array[]::text[] as e`;
  expect(row).toEqual({
    n: 9_007_199_254_740_993n,
    b: Buffer.from([0, 255]),
    j: { a: [1, null, "x"] },
    t: ["a b", null, 'c"\\d'],
    ns: [1n],
    t2: true,
    e: [],
  });
});

test.each([["5"], ["text"], [5], [true], [[true, false]], [[1, 2]], [{ a: "5" }], ['{"a":1}'], [""]])(
  "the JSON value %j survives statements and Drizzle, inside a transaction and outside",
  async (value) => {
    const things = pgTable("things", { id: integer("id").primaryKey(), name: text("name"), value: jsonb("value") });
    await sql`create table if not exists things (id int primary key, name text, value jsonb)`;
    await sql`truncate things`;
    await orm(sql).insert(things).values({ id: 1, name: "a", value });
    await transaction(sql, async (tx) => {
      await orm(tx).insert(things).values({ id: 2, name: "b", value });
      await tx`insert into things values (3, 'c', ${tx.json(value as never)})`;
    });
    await sql`insert into things values (4, 'd', ${sql.json(value as never)})`;
    const rows = await sql`select id, value, jsonb_typeof(value) as type from things order by id`;
    const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
    expect(rows.map((row) => [row.value, row.type])).toEqual(Array(4).fill([value, type]));
    const found = await orm(sql).select().from(things).orderBy(things.id);
    expect(found.map((row) => row.value)).toEqual(Array(4).fill(value));
  },
);
