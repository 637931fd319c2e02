import { beforeEach, expect, test } from "vitest";
import type { Db } from "../../src/db/connect.ts";
import { afterCommit, again, transaction } from "../../src/db/transaction.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();
await sql`create table accounts (id int primary key, amount int not null)`;

beforeEach(async () => {
  await sql`truncate accounts`;
  await sql`insert into accounts values (1, 100), (2, 100)`;
});

const amounts = async () => (await sql`select amount from accounts order by id`).map((row) => row.amount);

test("what resolves is committed, what throws leaves nothing", async () => {
  const answer = await transaction(sql, async (tx) => {
    await tx`update accounts set amount = 1 where id = 1`;
    return "done";
  });
  expect(answer).toBe("done");
  const failure = transaction(sql, async (tx) => {
    await tx`update accounts set amount = 2 where id = 1`;
    throw new Error("no");
  });
  await expect(failure).rejects.toThrow("no");
  expect(await amounts()).toEqual([1, 100]);
});

test("within a transaction it joins: both commit together, or neither", async () => {
  const failure = transaction(sql, async (tx) => {
    await transaction(tx, async (inner) => {
      expect(inner).toBe(tx);
      await inner`update accounts set amount = 3 where id = 2`;
    });
    throw new Error("no");
  });
  await expect(failure).rejects.toThrow("no");
  expect(await amounts()).toEqual([100, 100]);
});

test("an error of PostgreSQL comes out as it is, also when the transaction has swallowed it", async () => {
  const twice = transaction(sql, async (tx) => {
    await tx`insert into accounts values (1, 1)`;
  });
  await expect(twice).rejects.toMatchObject({ code: "23505" });
  const swallowed = transaction(sql, async (tx) => {
    await tx`insert into accounts values (1, 1)`.catch(() => undefined);
  });
  await expect(swallowed).rejects.toMatchObject({ code: "23505" });
});

test("serialization failures run again until all are through", async () => {
  let runs = 0;
  let reads = 0;
  const two = Promise.withResolvers<void>();
  const increments = Array.from({ length: 8 }, () =>
    transaction(sql, async (tx) => {
      runs++;
      await tx`set transaction isolation level repeatable read`;
      const [row] = await tx<{ amount: number }[]>`select amount from accounts where id = 1`;
      // Two have read the same before either writes, so that one of them fails.
      reads += 1;
      if (reads === 2) two.resolve();
      if (reads <= 2) await two.promise;
      await tx`update accounts set amount = ${(row?.amount as number) + 1} where id = 1`;
    }).catch((error) => error.code as string),
  );
  const failed = (await Promise.all(increments)).filter((code) => code !== undefined);
  expect(failed.every((code) => code === "40001")).toBe(true);
  expect((await amounts())[0]).toBe(108 - failed.length);
  expect(runs).toBeGreaterThan(8);
});

test("deadlocks run again", async () => {
  await sql`select 1`;
  const order = [
    [1, 2],
    [2, 1],
  ];
  let runs = 0;
  await Promise.all(
    order.map(([first, second]) =>
      transaction(sql, async (tx) => {
        runs++;
        await tx`update accounts set amount = amount + 1 where id = ${first as number}`;
        await tx`select pg_sleep(0.05)`;
        await tx`update accounts set amount = amount + 1 where id = ${second as number}`;
      }),
    ),
  );
  expect(await amounts()).toEqual([102, 102]);
  expect(runs).toBeGreaterThan(2);
});

test("a failure that lasts is thrown after six runs, any other after one", async () => {
  let runs = 0;
  const lasting = transaction(sql, async (tx) => {
    runs++;
    await tx`do $$ begin raise exception 'again' using errcode = '40001'; end $$`;
  });
  await expect(lasting).rejects.toMatchObject({ code: "40001" });
  expect(runs).toBe(6);
});

test("what is to happen after the commit happens then, and never when there is none", async () => {
  const told: string[] = [];
  await transaction(sql, async (tx) => {
    await transaction(tx, async (inner) => afterCommit(inner, () => told.push("inner")));
    afterCommit(tx, () => told.push("outer"));
    await tx`update accounts set amount = 5 where id = 1`;
    expect(told).toEqual([]);
  });
  expect(told).toEqual(["inner", "outer"]);
  let runs = 0;
  await transaction(sql, async (tx) => {
    runs++;
    afterCommit(tx, () => told.push(`run ${runs}`));
    if (runs < 3) throw again("once more");
  });
  const failure = transaction(sql, async (tx) => {
    afterCommit(tx, () => told.push("failed"));
    await tx`insert into accounts values (1, 1)`.catch(() => undefined);
  });
  await expect(failure).rejects.toMatchObject({ code: "23505" });
  expect(told).toEqual(["inner", "outer", "run 3"]);
  expect(() => afterCommit(sql, () => undefined)).toThrow("needs a transaction");
});

test("statements that were sent and not waited for are part of it, and of its failure", async () => {
  await transaction(sql, async (tx) => {
    tx`update accounts set amount = 6 where id = 1`.execute();
  });
  const failure = transaction(sql, async (tx) => {
    tx`update accounts set amount = 7 where id = 1`.execute();
    tx`insert into accounts values (1, 1)`.catch(() => undefined);
    tx`update accounts set amount = 8 where id = 1`.catch(() => undefined);
  });
  await expect(failure).rejects.toMatchObject({ code: "23505" });
  expect(await amounts()).toEqual([6, 100]);
});

test("the first statement that fails is what is reported, whichever is waited for first", async () => {
  const behind = transaction(sql, async (tx) => {
    const first = tx`insert into accounts values (1, 1)`.execute();
    first.catch(() => undefined);
    await tx`select 1`;
    await first;
  });
  await expect(behind).rejects.toMatchObject({ code: "23505" });
  let runs = 0;
  const lasting = transaction(sql, async (tx) => {
    runs++;
    tx`do $$ begin raise exception 'again' using errcode = '40001'; end $$`.catch(() => undefined);
    await tx`select 1`;
  });
  await expect(lasting).rejects.toMatchObject({ code: "40001" });
  expect(runs).toBe(6);
});

test("a statement that is sent after the end of its transaction is refused, and not run alone", async () => {
  let told: unknown;
  const late = async (tx: Db, id: number) => {
    await tx`select pg_sleep(0.1)`;
    await tx`update accounts set amount = 9 where id = ${id}`.catch((error) => {
      told = error;
    });
  };
  let branch: Promise<void> | undefined;
  const failure = transaction(sql, async (tx) => {
    branch = late(tx, 1);
    await Promise.all([branch, Promise.reject(new Error("no"))]);
  });
  await expect(failure).rejects.toThrow("no");
  await branch;
  expect(told).toMatchObject({ message: "the transaction has ended" });
  told = undefined;
  await transaction(sql, async (tx) => {
    branch = late(tx, 2);
  });
  await branch;
  expect(told).toMatchObject({ message: "the transaction has ended" });
  expect(await amounts()).toEqual([100, 100]);
});

test("a transaction whose prepared statement answers other columns since runs again, as a whole", async () => {
  await sql`create table entries (n int not null)`;
  const all = (i: number) =>
    transaction(sql, async (tx) => {
      const waited = tx`insert into entries values (${i}) returning *`;
      if (i % 2 === 0) await waited;
      else waited.catch(() => undefined);
      return await tx`select * from entries limit 1`;
    });
  // On each connection, so that it is prepared there.
  await Promise.all(Array.from({ length: 30 }, (_, i) => all(i)));
  await sql`alter table entries add column note text`;
  for (const [row] of await Promise.all(Array.from({ length: 30 }, (_, i) => all(i))))
    expect(row).toHaveProperty("note");
  const counts = await sql`select count(*)::int as times from entries group by n`;
  expect(counts.map(({ times }) => times)).toEqual(Array.from({ length: 30 }, () => 2));
});
