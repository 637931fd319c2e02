import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { cancelOn } from "../../../src/db/driver/cancel.ts";
import { currentHolder, withHolder } from "../../../src/db/request-scope.ts";
import { sessionName } from "../../../src/db/session-name.ts";
import { transaction } from "../../../src/db/transaction.ts";
import { testDatabase } from "../../support/database.ts";

const { sql, pool } = await testDatabase({ counts: { questions: 4 } });

const running = async (marker: string) => {
  const rows = await sql`
    select 1 from pg_stat_activity
    where state = 'active' and datname = current_database() and pid <> pg_backend_pid() and strpos(query, ${marker}::text) > 0`;
  return rows.length;
};

describe("a statement whose signal aborts", () => {
  test("is stopped in PostgreSQL, and throws the signal's reason", async () => {
    const controller = new AbortController();
    const reason = new Error("the caller has gone");
    const answer = cancelOn(sql`select pg_sleep(600) as marker_one`, controller.signal);
    setTimeout(() => controller.abort(reason), 100);
    await expect(answer).rejects.toBe(reason);
    expect(await running("marker_one")).toBe(0);
  });

  test("before it began, is not sent", async () => {
    await expect(cancelOn(sql`select pg_sleep(10)`, AbortSignal.abort(new Error("early")))).rejects.toThrow("early");
  });

  test("while it waits for a connection, leaves the queue at once", async () => {
    const over = new AbortController();
    const busy = Array.from({ length: 4 }, () => cancelOn(sql`select pg_sleep(600)`, over.signal));
    const controller = new AbortController();
    const answer = cancelOn(sql`select 1`, controller.signal);
    setTimeout(() => controller.abort(new Error("gone")), 20);
    await expect(answer).rejects.toThrow("gone");
    over.abort();
    await Promise.allSettled(busy);
    expect(await sql`select 2 as n`).toEqual([{ n: 2 }]);
  });

  test("while its connection is being made, leaves a pool that works", async () => {
    const fresh = await testDatabase({ counts: { questions: 1 } });
    const controller = new AbortController();
    const answer = cancelOn(fresh.sql`select pg_sleep(5)`, controller.signal);
    setImmediate(() => controller.abort(new Error("gone")));
    await expect(answer).rejects.toThrow("gone");
    expect(await fresh.sql`select 3 as n`).toEqual([{ n: 3 }]);
    await fresh.drop();
  });

  test("in a transaction takes the transaction along, and leaves the connection fit for others", async () => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("gone")), 50);
    const work = transaction(sql, async (tx) => {
      await Promise.all([tx`select 1`, cancelOn(tx`select pg_sleep(10)`, controller.signal), tx`select 2`]);
    });
    await expect(work).rejects.toThrow(/gone|canceling statement/);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => sql`select ${i}::int as i`));
    expect(answers.map(([row]) => row?.i)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  test("never hits another statement, and never mixes up answers, whenever it aborts", async () => {
    let stopped = 0;
    const clients = Array.from({ length: 12 }, async (_, c) => {
      for (let i = 0; i < 60; i++) {
        const value = c * 1000 + i;
        const controller = new AbortController();
        if (c % 2 === 0) setTimeout(() => controller.abort(new Error("gone")), Math.random() * 4);
        const statement = sql`select ${value}::int as value, pg_sleep(${Math.random() * 0.004}::float8)`;
        try {
          const [row] = c % 2 === 0 ? await cancelOn(statement, controller.signal) : await statement;
          expect(row?.value).toBe(value);
        } catch (error) {
          expect((error as Error).message).toBe("gone");
          expect(c % 2).toBe(0);
          stopped++;
        }
      }
    });
    await Promise.all(clients);
    expect(stopped).toBeGreaterThan(20);
    expect(await running("pg_sleep")).toBe(0);
  });
});

test("a slow statement delays none but its own caller", async () => {
  const over = new AbortController();
  const slow = cancelOn(sql`select pg_sleep(600)`, over.signal);
  for (let i = 0; i < 30; i++) await Promise.all([sql`select 1`, sql`select 2`, sql`select 3`]);
  over.abort();
  await expect(slow).rejects.toThrow();
});

test("statements beyond the connections wait for their turn, and none is forgotten", async () => {
  const order: number[] = [];
  await Promise.all(Array.from({ length: 200 }, (_, i) => sql`select ${i}::int as i`.then(() => order.push(i))));
  expect(order).toHaveLength(200);
  // The process of one that has ended may still be there.
  const count = async () =>
    (await sql`select from pg_stat_activity where application_name = ${sessionName()} and datname = current_database()`)
      .count;
  await expect.poll(count).toBeLessThanOrEqual(4);
});

test("a transaction that had to wait for its turn runs on behalf of the one that has sent it", async () => {
  const few = await testDatabase({ counts: { questions: 1 } });
  const asked = await Promise.all(
    ["one", "other"].map((tenant) =>
      withHolder({ tenant }, () =>
        transaction(few.sql, async (tx) => {
          await tx`select 1`;
          return currentHolder().tenant;
        }),
      ),
    ),
  );
  expect(asked).toEqual(["one", "other"]);
  await few.drop();
});

test("limits of time for statements, locks and idle transactions are set", async () => {
  const served = await testDatabase({ statementTimeoutMs: 15_000 });
  const [row] = await served.sql`
    select current_setting('statement_timeout') as s, current_setting('lock_timeout') as l,
      current_setting('idle_in_transaction_session_timeout') as i`;
  expect(row).toEqual({ s: "15s", l: "5s", i: "15s" });
});

test("a closed pool refuses, and closing waits for what runs", async () => {
  const other = await testDatabase();
  const last = other.sql`select pg_sleep(0.3), 5 as n`.execute();
  await sleep(50);
  await other.pool.close();
  expect((await last)[0]?.n).toBe(5);
  await expect(other.sql`select 1`).rejects.toThrow("lost");
  expect(pool.gate.open).toBe(true);
});

test("a connection that PostgreSQL ends is not used again, though its end is still under way", async () => {
  for (let i = 0; i < 20; i++) {
    await expect(sql`select pg_terminate_backend(pg_backend_pid())`).rejects.toThrow();
    expect(await sql`select 1 as n`).toEqual([{ n: 1 }]);
  }
});

describe("statements that differ in their text", () => {
  const prepared = async (db: typeof sql) => {
    const [row] = await db<{ n: number }[]>`select count(*)::int4 as n from pg_prepared_statements`;
    return row?.n;
  };

  test("do not gather in PostgreSQL without end, alone or in transactions; one of the same text is prepared once", async () => {
    const fresh = await testDatabase({ counts: { questions: 1 } });
    const { sql } = fresh.pool;
    await prepared(sql);
    for (let i = 0; i < 50; i += 1) await sql`select ${i}::int4 as n`;
    expect(await prepared(sql)).toBe(2);
    for (let i = 0; i < 1000; i += 1) expect(await sql`select 7 as ${sql(`n${i}`)}`).toEqual([{ [`n${i}`]: 7 }]);
    expect(await prepared(sql)).toBeLessThan(450);
    for (let i = 0; i < 100; i += 1) {
      await transaction(sql, (tx) =>
        Promise.all(Array.from({ length: 10 }, (_, k) => tx`select 7 as ${tx(`t${i}_${k}`)}`)),
      );
    }
    expect(await prepared(sql)).toBeLessThan(450);
    await fresh.drop();
  });
});

test("a connection gives up its plans after their time, between statements; one that plans once keeps them", async () => {
  const sent: string[] = [];
  const debug = (_: number, statement: string) => void sent.push(statement);
  const fresh = await testDatabase({ counts: { questions: 1, ingest: 1 }, replanMs: 0, debug });
  const twice = async (on: typeof fresh.sql) => [await on`select 1 as n`, await on`select 2 as n`];
  expect(await twice(fresh.sql)).toEqual([[{ n: 1 }], [{ n: 2 }]]);
  await sleep(10);
  const own = sent.filter((text) => !text.includes("standby"));
  expect(own.filter((text) => text !== "discard plans")).toEqual(["select 1 as n", "select 2 as n"]);
  expect(own.length).toBeGreaterThan(2);
  sent.length = 0;
  await twice(fresh.pool.ingest);
  expect(sent).toEqual(["select 1 as n", "select 2 as n"]);
  await fresh.drop();
});
