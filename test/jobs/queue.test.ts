import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { backlogs, dueLanes } from "../../src/jobs/due-lanes.ts";
import {
  cancel,
  claim,
  enqueue,
  finishJobs,
  giveBackJobs,
  type Lane,
  LeaseLost,
  type NewJob,
  renew,
  settleJobs,
} from "../../src/jobs/queue.ts";
import { testDatabase } from "../support/database.ts";
import { bareTenant } from "../support/tenant.ts";

const { pool, sql } = await testDatabase();
const now = 1_000_000;
const lease = 10_000;

const newLane = async (kind = "test"): Promise<Lane> => ({ tenantId: await bareTenant(sql), kind });
const put = (lane: Lane, jobs: NewJob[], nowMs = now) => transaction(sql, (tx) => enqueue(tx, lane, jobs, nowMs));
const take = (lane: Lane, nowMs = now, sizeMax = 100) => claim(sql, lane, { sizeMax, leaseMs: lease, nowMs });
const end = (lane: Lane, jobs: Awaited<ReturnType<typeof take>>) =>
  transaction(sql, (tx) => finishJobs(tx, lane, jobs));
const dueOf = async (lane: Lane, untilMs = Number.MAX_SAFE_INTEGER) =>
  (await dueLanes(pool, [lane.kind], untilMs)).find(({ tenantId }) => tenantId === lane.tenantId)?.dueMs;
const ids = (jobs: { id: string }[]) => jobs.map(({ id }) => id).sort();

describe("a job", () => {
  test("is there when the transaction that enqueued it commits, and not when it does not", async () => {
    const lane = await newLane();
    await transaction(sql, async (tx) => {
      await enqueue(tx, lane, [{ payload: { n: 1 } }], now);
      expect(await take(lane)).toEqual([]);
      throw new Error("not to be kept");
    }).catch(() => undefined);
    expect(await take(lane)).toEqual([]);
    expect(await dueOf(lane)).toBeUndefined();
    await put(lane, [{ payload: { n: 2 }, id: "a", size: 3 }]);
    expect(await dueOf(lane)).toBe(now);
    expect(await take(lane)).toMatchObject([{ id: "a", payload: { n: 2 }, size: 3, fence: 1n, failures: 0 }]);
  });

  test("is claimed when it is due, and not before", async () => {
    const lane = await newLane();
    await put(lane, [
      { payload: 1, id: "later", dueMs: now + 500 },
      { payload: 1, id: "now" },
    ]);
    expect(ids(await take(lane))).toEqual(["now"]);
    expect(ids(await take(lane, now + 499))).toEqual([]);
    expect(ids(await take(lane, now + 500))).toEqual(["later"]);
  });

  test("is claimed by one of many workers that claim at once", async () => {
    const lane = await newLane();
    await put(
      lane,
      Array.from({ length: 200 }, (_, i) => ({ payload: i, id: String(i).padStart(3, "0") })),
    );
    const taken: string[] = [];
    for (let round = 0; taken.length < 200 && round < 100; round++) {
      const found = await Promise.all(Array.from({ length: 8 }, () => take(lane, now, 7)));
      taken.push(...found.flat().map(({ id }) => id));
    }
    expect(taken.length).toBe(200);
    expect(new Set(taken).size).toBe(200);
  });

  test("goes when it is done; its work and its end are one", async () => {
    const lane = await newLane();
    await put(lane, [{ payload: 1 }]);
    const jobs = await take(lane);
    await transaction(sql, async (tx) => {
      await finishJobs(tx, lane, jobs);
      throw new Error("the work has failed");
    }).catch(() => undefined);
    await end(lane, jobs);
    expect(await take(lane, now + lease)).toEqual([]);
  });

  test("of an id replaces the one that waits, and makes a run of it void", async () => {
    const lane = await newLane();
    await put(lane, [{ payload: "old", id: "a" }]);
    const old = await take(lane);
    await put(lane, [{ payload: "new", id: "a", dueMs: now + 10 }]);
    await expect(end(lane, old)).rejects.toThrow(LeaseLost);
    expect(await take(lane)).toEqual([]);
    expect(await take(lane, now + 10)).toMatchObject([{ payload: "new" }]);
  });

  test("that is cancelled is not done, and a run of it is void", async () => {
    const lane = await newLane();
    await put(lane, [{ payload: 1, id: "a" }]);
    const jobs = await take(lane);
    await cancel(sql, lane, "a");
    await expect(end(lane, jobs)).rejects.toThrow(LeaseLost);
    expect(await take(lane, now + lease)).toEqual([]);
  });

  test("that is to be done again is no longer its holder's: a late renewal or failure has no effect", async () => {
    const lane = await newLane();
    await put(lane, [{ id: "a", payload: {} }]);
    const jobs = await take(lane);
    await transaction(sql, (tx) => finishJobs(tx, lane, jobs, [{ id: "a", payload: {}, dueMs: now + 100 }]));
    await renew(sql, lane, jobs, { leaseMs: lease, nowMs: now });
    await giveBackJobs(sql, lane, jobs, now + 5000, true);
    expect(await take(lane, now + 100)).toMatchObject([{ id: "a", failures: 0 }]);
  });

  test("that is to be done again waits for its next time, with what it has been given", async () => {
    const lane = await newLane();
    await put(lane, [
      { payload: 1, id: "a" },
      { payload: 1, id: "b" },
    ]);
    const jobs = await take(lane);
    await transaction(sql, (tx) => finishJobs(tx, lane, jobs, [{ id: "a", dueMs: now + 60_000, payload: 2 }]));
    await settleJobs(sql, lane, now);
    expect(await dueOf(lane)).toBe(now + 60_000);
    expect(await take(lane, now + 59_999)).toEqual([]);
    expect(await take(lane, now + 60_000)).toMatchObject([{ id: "a", payload: 2 }]);
  });
});

describe("a lease", () => {
  test("keeps a job from others until it ends; then what its holder does has no effect", async () => {
    const lane = await newLane();
    await put(lane, [{ payload: 1 }]);
    const first = await take(lane);
    expect(await take(lane, now + lease - 1)).toEqual([]);
    const second = await take(lane, now + lease);
    expect(second).toMatchObject([{ fence: 2n }]);
    await expect(end(lane, first)).rejects.toThrow(LeaseLost);
    await giveBackJobs(sql, lane, first, now, true);
    await renew(sql, lane, first, { leaseMs: 10 * lease, nowMs: now });
    expect(await take(lane, now + 2 * lease)).toMatchObject([{ fence: 3n, failures: 0 }]);
  });

  test("is renewed by its holder", async () => {
    const lane = await newLane();
    await put(lane, [{ payload: 1 }]);
    const jobs = await take(lane);
    await renew(sql, lane, jobs, { leaseMs: lease, nowMs: now + lease - 1 });
    expect(await take(lane, now + lease)).toEqual([]);
    await end(lane, jobs);
  });

  test("does not come back for what was given back: a renewal that was under way has no effect", async () => {
    const lane = await newLane();
    await put(lane, [{ payload: 1, id: "a" }]);
    const jobs = await take(lane);
    await giveBackJobs(sql, lane, jobs, now, false);
    await renew(sql, lane, jobs, { leaseMs: lease, nowMs: now });
    expect(ids(await take(lane))).toEqual(["a"]);
  });

  test("lost by one of several jobs undoes the work of all", async () => {
    const lane = await newLane();
    await put(lane, [
      { payload: 1, id: "a" },
      { payload: 1, id: "b" },
    ]);
    const jobs = await take(lane);
    await cancel(sql, lane, "b");
    await expect(end(lane, jobs)).rejects.toThrow(LeaseLost);
    expect(ids(await take(lane, now + lease))).toEqual(["a"]);
  });
});

describe("a claim", () => {
  test("takes the first due first, as much as fits, and at least one job", async () => {
    const lane = await newLane();
    const sizes = [40, 40, 40, 500, 1];
    await put(
      lane,
      sizes.map((size, i) => ({ payload: i, id: `${i}`, size, dueMs: now + i })),
    );
    expect(ids(await take(lane, now + 9, 100))).toEqual(["0", "1", "2"]);
    expect(ids(await take(lane, now + 9, 100))).toEqual(["3"]);
    expect(ids(await take(lane, now + 9, 100))).toEqual(["4"]);
  });

  test("takes one that has failed alone", async () => {
    const lane = await newLane();
    await put(
      lane,
      ["a", "b", "c"].map((id) => ({ payload: 1, id })),
    );
    await giveBackJobs(sql, lane, await take(lane), now + 1, true);
    await put(lane, [{ payload: 1, id: "d", dueMs: now + 2 }]);
    for (const id of ["a", "b", "c", "d"]) expect(ids(await take(lane, now + 5))).toEqual([id]);
  });

  test("sees one lane only", async () => {
    const lane = await newLane();
    await put(lane, [{ payload: 1 }]);
    expect(await take({ ...lane, kind: "other" })).toEqual([]);
    expect(await take({ ...lane, tenantId: randomUUID() })).toEqual([]);
  });
});

describe("the table of due work", () => {
  test("follows the earliest job, and forgets a lane without any", async () => {
    const lane = await newLane();
    await put(lane, [{ payload: 1, id: "a", dueMs: now + 300 }]);
    await put(lane, [{ payload: 1, id: "b", dueMs: now + 100 }]);
    await put(lane, [{ payload: 1, id: "c", dueMs: now + 200 }]);
    expect(await dueOf(lane)).toBe(now + 100);
    await end(lane, await take(lane, now + 100));
    await settleJobs(sql, lane, now + 100);
    expect(await dueOf(lane)).toBe(now + 200);
    const jobs = await take(lane, now + 300);
    await settleJobs(sql, lane, now + 300);
    expect(await dueOf(lane)).toBe(now + 300 + lease);
    await end(lane, jobs);
    await settleJobs(sql, lane, now + 300);
    expect(await dueOf(lane)).toBeUndefined();
  });

  test("does not forget a lane while a transaction enqueues there, which delays no other one", async () => {
    const lane = await newLane();
    await put(lane, [{ payload: 1, id: "a" }]);
    await end(lane, await take(lane));
    const added = Promise.withResolvers<void>();
    const settled = Promise.withResolvers<void>();
    const adding = transaction(sql, async (tx) => {
      await enqueue(tx, lane, [{ payload: 1, id: "b" }], now);
      added.resolve();
      await settled.promise;
    });
    await added.promise;
    await settleJobs(sql, lane, now);
    await put(lane, [{ payload: 1, id: "c" }]);
    settled.resolve();
    await adding;
    expect(await dueOf(lane)).toBe(now);
    expect(ids(await take(lane))).toEqual(["b", "c"]);
  });

  test("loses no lane while jobs are enqueued, done and settled at once", async () => {
    const lane = await newLane();
    let adding = 4;
    const add = async () => {
      for (let i = 0; i < 40; i++) await put(lane, [{ payload: 1 }]);
      adding -= 1;
    };
    const work = async () => {
      while (adding > 0) {
        const jobs = await take(lane, now, 3);
        if (jobs.length > 0) await end(lane, jobs);
        else await settleJobs(sql, lane, now);
      }
    };
    await Promise.all([add(), add(), add(), add(), work(), work()]);
    for (let jobs = await take(lane); jobs.length > 0; jobs = await take(lane)) {
      expect(await dueOf(lane, now)).toBe(now);
      await end(lane, jobs);
    }
    await settleJobs(sql, lane, now);
    expect(await sql`select from jobs where tenant_id = ${lane.tenantId}`).toHaveLength(0);
    expect(await dueOf(lane)).toBeUndefined();
  });
});

test("the depth and the age of the queue can be read, kind by kind", async () => {
  const lane = await newLane("measured");
  await put(lane, [{ payload: 1 }, { payload: 1, id: "fails" }, { payload: 1, dueMs: now + 50_000 }]);
  await put(await newLane("measured"), [{ payload: 1 }], now + 3000);
  await giveBackJobs(sql, lane, (await take(lane, now, 1)).slice(0, 1), now + 9000, true);
  const [found] = (await backlogs(pool, now + 5000)).filter(({ kind }) => kind === "measured");
  expect(found).toEqual({ kind: "measured", due: 2, later: 2, failing: 1, oldestMs: 5000 });
});
