import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { int4Array } from "../../src/db/batch.ts";
import type { Db } from "../../src/db/connect.ts";
import { again, transaction } from "../../src/db/transaction.ts";
import { ingestQueue, type LaneKind } from "../../src/receiver/ingest-queue.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase({ poolConnectionsMax: 24 });
await sql`create table stored (tenant text, n int, batch bigint default txid_current())`;

const exhausted = expect.objectContaining({ code: Code.ResourceExhausted });
const unavailable = expect.objectContaining({ code: Code.Unavailable });

let kinds = 0;

/** A kind that stores numbers, with what else its transactions do. */
function kindOf(more: (tx: Db, items: readonly number[]) => Promise<unknown>): LaneKind<number> & {
  batches: { tenant: string; items: number[] }[];
} {
  const batches: { tenant: string; items: number[] }[] = [];
  return {
    name: `kind ${++kinds}`,
    batches,
    async store(tx, tenant, items) {
      batches.push({ tenant, items: [...items] });
      await tx`insert into stored (tenant, n) select ${tenant}, n from unnest(${int4Array(items)}::int4[]) as n`;
      await more(tx, items);
      return undefined;
    },
  };
}

const open = (batchesMax = 4, waitMsMax = 60_000) => ingestQueue(sql, { batchesMax, waitMsMax });
const part = (...items: number[]) => ({ items, bytes: items.length });
const many = (count: number, from = 0) => part(...Array.from({ length: count }, (_, i) => from + i));
const inTable = async (tenant: string) =>
  (await sql<{ n: number }[]>`select n from stored where tenant = ${tenant} order by n`).map(({ n }) => n);

test("a part that finds its lane idle starts at once; what comes meanwhile is stored together, in the order of arrival", async () => {
  const kind = kindOf(() => sleep(30));
  const all = open();
  const answers = [all.put(kind, "gathers", part(1), true)];
  await sleep(5);
  for (let n = 2; n <= 40; n++) answers.push(all.put(kind, "gathers", part(n), true));
  expect((await Promise.all(answers)).every(({ size }) => size === 0)).toBe(true);
  expect(kind.batches.map(({ items }) => items)).toEqual([[1], Array.from({ length: 39 }, (_, i) => i + 2)]);
});

test("a second batch of a lane starts only when it would be full, and never a third", async () => {
  let running = 0;
  let most = 0;
  const kind: LaneKind<number> = {
    name: "full",
    async store(_tx, _tenant, items) {
      running += 1;
      most = Math.max(most, running);
      if (running === 2) expect(items.length).toBe(1000);
      await sleep(20);
      running -= 1;
      return undefined;
    },
  };
  const all = open();
  await Promise.all(Array.from({ length: 30 }, (_, i) => all.put(kind, "t", many(i === 0 ? 1 : 250), true)));
  expect(most).toBe(2);
});

test("tenants take turns, and one that sends everything leaves a connection to the others", async () => {
  const kind = kindOf(() => sleep(20));
  const all = open(2);
  const flood = Array.from({ length: 40 }, (_, i) => all.put(kind, "loud", many(300, i * 300), true));
  await sleep(5);
  await all.put(kind, "quiet", part(1), true);
  const place = kind.batches.findIndex(({ tenant }) => tenant === "quiet");
  expect(place).toBeLessThanOrEqual(2);
  await Promise.all(flood);
});

test("a tenant that owes for its batches waits, is refused where that takes too long, and keeps nobody else waiting", async () => {
  let owedMs = 0;
  const kind: ReturnType<typeof kindOf> = {
    ...kindOf(async () => undefined),
    owedMs: (id) => (id === "owes" ? owedMs : 0),
  };
  const all = open(1, 200);
  await all.put(kind, "owes", part(1), true);
  owedMs = 100;
  const later = [2, 3].map((n) => all.put(kind, "owes", part(n), true));
  for (let n = 1; n <= 5; n++) await all.put(kind, "pays", part(n), true);
  expect(await inTable("owes")).toEqual([1]);
  owedMs = 300;
  await expect(all.put(kind, "owes", part(4), true)).rejects.toEqual(exhausted);
  expect(() => all.check("owes", kind.name)).toThrow(exhausted);
  all.check("pays", kind.name);
  owedMs = 0;
  await Promise.all(later);
  expect(await inTable("owes")).toEqual([1, 2, 3]);
});

describe("what fails", () => {
  const bad = kindOf(async (tx, items) => {
    for (const n of items) if (n < 0) await tx`select ${`${n}`}::text::uuid`;
  });

  test("of its content is its own: the others of the batch are stored, and only those items are named", async () => {
    const all = open();
    const first = all.put(bad, "content", many(3), true);
    const rest = [part(10, -1, 11), part(20), part(-2), many(50, 100)].map((each) =>
      all.put(bad, "content", each, true),
    );
    await first;
    const [mixed, good, alone, last] = await Promise.all(rest);
    expect([mixed, alone].map((each) => [...(each as Map<number, string>).keys()])).toEqual([[1], [0]]);
    expect([good, last].map((each) => each?.size)).toEqual([0, 0]);
    expect(mixed?.get(1)).toContain("cannot be stored: ");
    const stored = await inTable("content");
    expect(stored.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 10, 11, 20, ...many(50, 100).items]);
  });

  test("because PostgreSQL asks for it, is run again from its beginning; in vain again and again it is 14", async () => {
    const all = open();
    let runs = 0;
    const stubborn = (times: number) =>
      kindOf(async () => {
        if (++runs <= times) throw again("once more");
      });
    await all.put(stubborn(3), "again", part(1, 2), true);
    expect(runs).toBe(4);
    expect(await inTable("again")).toEqual([1, 2]);
    await expect(all.put(stubborn(1000), "never", part(1), true)).rejects.toEqual(unavailable);
    expect(await inTable("never")).toEqual([]);
  });

  test("otherwise is 14 for the whole batch, a commit whose end is unknown included", async () => {
    const all = open();
    const dies = kindOf(async (tx) => await tx`select pg_terminate_backend(pg_backend_pid())`);
    await expect(all.put(dies, "dies", part(1), true)).rejects.toEqual(unavailable);
    const slow = kindOf(async (tx) => {
      await tx`set local statement_timeout = 20`;
      await tx`select pg_sleep(5)`;
    });
    await expect(all.put(slow, "slow", part(1), true)).rejects.toEqual(unavailable);
    const broken = kindOf(() => Promise.reject(new TypeError("a mistake")));
    await expect(all.put(broken, "broken", part(1), true)).rejects.toThrow("a mistake");
    expect(await inTable("broken")).toEqual([]);
  });
});

test("a part whose call has ended leaves the queue unstored", async () => {
  const kind = kindOf(() => sleep(20));
  const all = open();
  const first = all.put(kind, "left", part(1), true);
  const gone = all.put(kind, "left", { ...part(2), abandoned: () => true }, true);
  const stays = all.put(kind, "left", part(3), true);
  await expect(gone).rejects.toEqual(unavailable);
  await Promise.all([first, stays]);
  expect(await inTable("left")).toEqual([1, 3]);
});

test("more is refused when what waits would take too long, by how long it takes; an empty lane and what was let in are not", async () => {
  const kind = kindOf(() => sleep(200));
  const all = open(4, 200);
  const answers: Promise<unknown>[] = [];
  let refused = 0;
  let atTheDoor = 0;
  for (let i = 0; i < 100; i++) {
    const answer = all.put(kind, "flooded", many(200), true);
    answers.push(answer.catch((error) => expect(error).toEqual(exhausted)));
    answer.catch(() => refused++);
    try {
      all.check("flooded", kind.name);
    } catch (error) {
      expect(error).toEqual(exhausted);
      atTheDoor += 1;
    }
    all.check("another", kind.name);
    await sleep(1);
  }
  expect(atTheDoor).toBeGreaterThan(10);
  await Promise.all(answers);
  expect(refused).toBeGreaterThan(10);
  expect(refused).toBeLessThan(100);
  all.check("flooded", kind.name);
  expect(await all.put(kind, "flooded", part(1), true)).toEqual(new Map());
});

test("one slow transaction at first refuses nothing that waits behind it", async () => {
  let runs = 0;
  const kind = kindOf(() => sleep(runs++ < 2 ? 800 : 50));
  const all = open(4, 1000);
  let left = 24;
  async function send() {
    for (; left > 0; left--) {
      all.check("cold", kind.name);
      await all.put(kind, "cold", many(1000), true);
    }
  }
  await Promise.all(Array.from({ length: 4 }, send));
});

test("stopping stores what was accepted, and admits nothing more", async () => {
  const kind = kindOf(() => sleep(30));
  const all = open();
  const answers = Promise.all([1, 2, 3].map((n) => all.put(kind, "stopped", part(n), true)));
  const stopped = all.stop();
  expect(() => all.check("stopped", kind.name)).toThrow(unavailable);
  await expect(all.put(kind, "stopped", part(4), true)).rejects.toEqual(unavailable);
  await stopped;
  await answers;
  expect(await inTable("stopped")).toEqual([1, 2, 3]);
});

test("a lock that others hold for a while is waited for", async () => {
  const kind = kindOf(async (tx) => {
    await tx`set local lock_timeout = 50`;
    await tx`select from stored where tenant = 'locked' and n = 0 for update`;
  });
  await sql`insert into stored values ('locked', 0)`;
  const locked = Promise.withResolvers<void>();
  const holder = transaction(sql, async (tx) => {
    await tx`select from stored where tenant = 'locked' for update`;
    locked.resolve();
    await sleep(150);
  });
  await locked.promise;
  await open().put(kind, "locked", part(1), true);
  await holder;
  expect(await inTable("locked")).toEqual([0, 1]);
});
