import { sql as drizzleSql, eq } from "drizzle-orm";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";
import { expect, test } from "vitest";
import { orm } from "../../src/db/orm.ts";
import { transaction } from "../../src/db/transaction.ts";
import { testDatabase } from "../support/database.ts";

const seen: { statement: string; parameters: unknown[] }[] = [];
const { sql } = await testDatabase({
  poolConnectionsMax: 1,
  debug: (_connection, statement, parameters) => void seen.push({ statement, parameters }),
});
const notes = pgTable("notes", { id: bigint("id", { mode: "bigint" }).primaryKey(), name: text("name").notNull() });
await sql`create table notes (id bigint primary key, name text not null)`;

const prepared = async () => {
  const rows = await sql<{ statement: string }[]>`select statement from pg_prepared_statements`;
  return rows.filter(({ statement }) => statement.includes('"notes"'));
};

test("a typed query answers typed rows, and the log of statements sees it with its parameters", async () => {
  await orm(sql).insert(notes).values({ id: 1n, name: "one" });
  expect(await orm(sql).select().from(notes).where(eq(notes.id, 1n))).toEqual([{ id: 1n, name: "one" }]);
  const { statement, parameters } = seen.at(-1) ?? { statement: "", parameters: [] };
  expect(statement).toBe('select "id", "name" from "notes" where "notes"."id" = $1');
  expect(parameters).toEqual(["1"]);
});

test("a query of the same text is prepared once", async () => {
  const before = (await prepared()).length;
  for (let i = 0n; i < 10n; i += 1n) await orm(sql).select({ name: notes.name }).from(notes).where(eq(notes.id, i));
  expect((await prepared()).length).toBe(before + 1);
});

test("in a transaction it is the transaction's, and goes with it", async () => {
  const work = transaction(sql, async (tx) => {
    await orm(tx).insert(notes).values({ id: 2n, name: "two" });
    expect(await tx`select name from notes where id = 2`).toEqual([{ name: "two" }]);
    throw new Error("not to be kept");
  });
  await expect(work).rejects.toThrow("not to be kept");
  expect(await orm(sql).select().from(notes).where(eq(notes.id, 2n))).toEqual([]);
});

test("PostgreSQL stops one whose signal aborts, which throws the signal's reason and leaves a pool that works", async () => {
  const controller = new AbortController();
  const slow = orm(sql, controller.signal).select({ slept: drizzleSql`pg_sleep(10)` }).from(notes);
  const answer = slow.execute();
  setTimeout(() => controller.abort(new Error("the caller has gone")), 100);
  await expect(answer).rejects.toThrow("the caller has gone");
  expect(await orm(sql).select({ name: notes.name }).from(notes)).toEqual([{ name: "one" }]);
});

test("an error is PostgreSQL's own, with its code and without the parameters", async () => {
  const taken = orm(sql).insert(notes).values({ id: 1n, name: "a secret" }).execute();
  await expect(taken).rejects.toMatchObject({ code: "23505", message: expect.not.stringContaining("a secret") });
  await expect(taken).rejects.not.toHaveProperty("params");
});

test("a transaction that PostgreSQL asks to run again does so", async () => {
  await sql.unsafe(`create function collide() returns int language plpgsql as
    $$ begin raise exception 'collided' using errcode = 'serialization_failure'; end $$`);
  let runs = 0;
  await transaction(sql, async (tx) => {
    runs += 1;
    if (runs === 1) await orm(tx).select({ never: drizzleSql`collide()` }).from(notes);
    await orm(tx).update(notes).set({ name: "uno" }).where(eq(notes.id, 1n));
  });
  expect(runs).toBe(2);
});
