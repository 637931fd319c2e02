import { expect, test } from "vitest";
import { Statement } from "../../../src/db/driver/statement.ts";
import { transaction } from "../../../src/db/transaction.ts";
import { testDatabase } from "../../support/database.ts";

const { sql } = await testDatabase({ counts: { questions: 2 } });

test("pieces, lists of pieces and names become one statement; all other values are parameters", async () => {
  const name = sql('a "b"');
  const inner = sql`${1}::int4 + ${sql`${2}::int4`}`;
  const list = [sql`${"x"}::text as c,`, sql`${"y"}::text as d`];
  expect(await sql`select ${inner} as ${name}, ${list}, ${"'; drop table tenants; --"}::text as e`).toEqual([
    { 'a "b"': 3, c: "x", d: "y", e: "'; drop table tenants; --" },
  ]);
});

test("one that is awaited again answers the same; a piece may be in several", async () => {
  const once = sql`select random() as n`;
  expect(await once).toEqual(await once);
  const piece = sql`random()`;
  const [{ n, m }] = await sql<[{ n: number; m: number }]>`select ${piece} as n, ${piece} as m`;
  expect(n).not.toBe(m);
});

test("what is never awaited is not sent", async () => {
  void sql`create table unwanted (n int4)`;
  await sql`select 1`;
  expect(await sql`select to_regclass('unwanted') as found`).toEqual([{ found: null }]);
});

test("an error names the statement's, and leaves the pool fit", async () => {
  await expect(sql`select ${"a"}::text::int4`).rejects.toMatchObject({ code: "22P02" });
  await expect(sql`select ${undefined as never}`).rejects.toThrow(/undefined/i);
  expect(await Promise.all(Array.from({ length: 5 }, (_, i) => sql`select ${i}::int4 as n`))).toHaveLength(5);
});

test("a transaction one of whose statements has failed is not committed, even where the error was caught", async () => {
  await sql`create table kept (n int4)`;
  const work = transaction(sql, async (tx) => {
    await tx`insert into kept values (1)`;
    await tx`select 1 / 0`.catch(() => undefined);
  });
  await expect(work).rejects.toMatchObject({ code: "22012" });
  expect(await sql`select n from kept`).toEqual([]);
});

test("nor is one with a statement that the driver has refused and that is not awaited", async () => {
  await sql`create table meant (n int4)`;
  const work = transaction(sql, async (tx) => {
    await tx`select 1`;
    tx`insert into meant values (${undefined as never})`.catch(() => undefined);
    tx`insert into meant values (1)`.catch(() => undefined);
  });
  await expect(work).rejects.toThrow(/undefined/i);
  expect(await sql`select n from meant`).toEqual([]);
});

test("one that cannot even be sent fails for who awaits it, and throws at no one who sends it", async () => {
  const statement = new Statement(["select 1"], [], () => {
    throw new TypeError("the connection has no socket");
  });
  expect(() => statement.execute()).not.toThrow();
  await expect(statement.then((rows) => rows)).rejects.toThrow("no socket");
});
