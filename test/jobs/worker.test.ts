import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Db } from "../../src/db/connect.ts";
import { makeHome } from "../../src/db/home-row.ts";
import { transaction } from "../../src/db/transaction.ts";
import { enqueue, type Job, type NewJob } from "../../src/jobs/queue.ts";
import { type JobKind, type WorkerOptions, worker } from "../../src/jobs/worker.ts";
import { testDatabase } from "../support/database.ts";

const database = await testDatabase({ poolConnectionsMax: 16 });
const { sql, pool } = database;
await sql.unsafe("create table done (tenant_id uuid, kind text, id text, at_ms float8)");
const nowMs = () => Math.floor(performance.timeOrigin + performance.now());

let kindsMade = 0;
const newKind = () => `kind ${++kindsMade}`;
async function put(tenantId: string, kind: string, jobs: NewJob[]) {
  await makeHome(sql, tenantId);
  await transaction(sql, (tx) => enqueue(tx, { tenantId, kind }, jobs, nowMs()));
}

/** A kind that notes each job that it has done. */
function noting(
  name: string,
  more: Partial<JobKind> & { before?: (jobs: readonly Job[]) => Promise<void> } = {},
): JobKind {
  const { before, ...rest } = more;
  return {
    name,
    sizeMax: 1,
    async run(tx, tenantId, jobs) {
      await before?.(jobs);
      for (const { id } of jobs) await note(tx, tenantId, name, id);
      return [];
    },
    ...rest,
  };
}

async function note(tx: Db, tenantId: string, kind: string, id: string) {
  await tx`insert into done values (${tenantId}, ${kind}, ${id}, ${nowMs()})`;
}

interface Line {
  [member: string]: unknown;
}

function start(kind: JobKind | JobKind[], options: Partial<WorkerOptions> = {}) {
  const lines: Line[] = [];
  const keep = (fields: object, message: string) => void lines.push({ ...fields, message });
  const made = worker(pool, {
    kinds: [kind].flat(),
    nowMs,
    log: { info: keep, warn: keep, error: keep },
    ...options,
  });
  onTestFinished(() => made.stop());
  return { ...made, lines };
}

const doneOf = (kind: string) => sql<{ tenant_id: string; id: string; at_ms: number }[]>`
  select tenant_id, id, at_ms from done where kind = ${kind} order by at_ms`;
const leftOf = async (kind: string) => (await sql`select from jobs where kind = ${kind}`).count;

/** Waits until no job is left and as many as these are noted: on a cluster the two tables lie on nodes that commit one after the other. */
const allDone = (kind: string, count: number) =>
  until(async () => (await leftOf(kind)) === 0 && (await doneOf(kind)).length >= count);

async function until(holds: () => boolean | Promise<boolean>) {
  await vi.waitUntil(holds, { timeout: 50_000, interval: 10 });
}

describe("a job is done", () => {
  test("soon after the call that wakes the worker, and without it when the worker looks by itself", async () => {
    const kind = newKind();
    // It would look by itself long after the test.
    const { wake, stop } = start(noting(kind), { pollMs: 600_000 });
    await put(randomUUID(), kind, [{ payload: 1, id: "a" }]);
    wake();
    await until(async () => (await doneOf(kind)).length === 1);
    await stop();
    start(noting(kind), { pollMs: 100 });
    await put(randomUUID(), kind, [{ payload: 1, id: "b" }]);
    await until(async () => (await doneOf(kind)).length === 2);
  });

  test("at its time, without a look in between", async () => {
    const kind = newKind();
    const { wake } = start(noting(kind), { pollMs: 600_000 });
    const dueMs = nowMs() + 500;
    await put(randomUUID(), kind, [{ payload: 1, dueMs }]);
    wake();
    await until(async () => (await doneOf(kind)).length === 1);
    expect((await doneOf(kind))[0]?.at_ms).toBeGreaterThanOrEqual(dueMs);
  });

  test("once, by whichever of several workers", async () => {
    const kind = newKind();
    const tenants = [randomUUID(), randomUUID(), randomUUID()];
    for (let i = 0; i < 3; i++) start(noting(kind, { sizeMax: 5 }), { pollMs: 50 });
    for (const tenant of tenants)
      await put(
        tenant,
        kind,
        Array.from({ length: 100 }, (_, i) => ({ payload: i })),
      );
    await allDone(kind, 300);
    const done = await doneOf(kind);
    expect(done).toHaveLength(300);
    expect(new Set(done.map(({ id }) => id)).size).toBe(300);
  });

  test("over and over, when it says so", async () => {
    const kind = newKind();
    const periodic: JobKind = {
      name: kind,
      sizeMax: 1,
      async run(tx, tenantId, jobs, now) {
        for (const { id } of jobs) await note(tx, tenantId, kind, id);
        return jobs.map(({ id, payload }) => ({ id, payload, dueMs: (Math.floor(now / 200) + 1) * 200 }));
      },
    };
    start(periodic);
    await put(randomUUID(), kind, [{ payload: 1, id: "a" }]);
    await until(async () => (await doneOf(kind)).length >= 4);
    const times = (await doneOf(kind)).map(({ at_ms }) => at_ms);
    expect(new Set(times.map((at) => Math.floor(at / 200))).size).toBe(times.length);
  });
});

describe("a job that fails", () => {
  test("is tried again, does not stop others, and the log reports it without what it holds", async () => {
    const kind = newKind();
    const tries: number[] = [];
    const before = async (jobs: readonly Job[]) => {
      if (!jobs.some(({ id }) => id === "bad")) return;
      tries.push(jobs.length);
      if (tries.length < 3) throw new Error("not yet");
    };
    const { lines } = start(noting(kind, { sizeMax: 10, before }));
    const good = Array.from({ length: 5 }, (_, i) => ({ payload: 1, id: `good ${i}` }));
    await put(randomUUID(), kind, [...good, { payload: { secret: "canary" }, id: "bad" }]);
    await allDone(kind, 6);
    expect((await doneOf(kind)).map(({ id }) => id).sort()).toEqual(["bad", ...good.map(({ id }) => id)]);
    // The first time together with the others, then alone.
    expect(tries).toEqual([6, 1, 1]);
    expect(lines.filter(({ message }) => message === "jobs have failed and are tried again")).toHaveLength(2);
    expect(JSON.stringify(lines)).not.toContain("canary");
  });

  test("has no effect of its tries", async () => {
    const kind = newKind();
    let tries = 0;
    const half: JobKind = {
      name: kind,
      sizeMax: 1,
      async run(tx, tenantId) {
        await note(tx, tenantId, kind, `try ${++tries}`);
        if (tries === 1) throw new Error("not yet");
        return [];
      },
    };
    start(half);
    await put(randomUUID(), kind, [{ payload: 1 }]);
    await allDone(kind, 1);
    expect((await doneOf(kind)).map(({ id }) => id)).toEqual(["try 2"]);
  });
});

describe("a worker", () => {
  test("serves tenants in turns: one with much to do does not keep the others waiting", async () => {
    const kind = newKind();
    const [busy, small] = [randomUUID(), randomUUID()];
    await put(
      busy,
      kind,
      Array.from({ length: 60 }, () => ({ payload: 1 })),
    );
    await put(small, kind, [{ payload: 1 }]);
    start(noting(kind, { before: () => sleep(5) as Promise<void> }), { runsMax: 1 });
    await allDone(kind, 61);
    const place = (await doneOf(kind)).findIndex(({ tenant_id }) => tenant_id === small);
    expect(place).toBeLessThan(3);
  });

  test("runs a kind that is alone once at a time, of all tenants", async () => {
    const kind = newKind();
    let [atOnce, most] = [0, 0];
    const before = async () => {
      most = Math.max(most, ++atOnce);
      await sleep(10);
      atOnce -= 1;
    };
    for (let i = 0; i < 3; i++) await put(randomUUID(), kind, [{ payload: 1 }, { payload: 2 }]);
    start(noting(kind, { alone: true, before }));
    await allDone(kind, 6);
    expect(most).toBe(1);
  });

  test("keeps the lease of a long run", async () => {
    const kind = newKind();
    const leases = new Set<string>();
    // Until its lease has been renewed twice.
    const before = () =>
      until(async () => {
        const [job] = await sql<
          { until: string }[]
        >`select lease_until_ms::text as until from jobs where kind = ${kind}`;
        return job !== undefined && leases.add(job.until).size > 2;
      });
    const options = { leaseMs: 1000, pollMs: 50 };
    const workers = [1, 2].map(() => start(noting(kind, { before }), options));
    await put(randomUUID(), kind, [{ payload: 1 }]);
    await allDone(kind, 1);
    for (const each of workers) await each.stop();
    expect(await doneOf(kind)).toHaveLength(1);
  });

  test("calls the others when there is more than it takes on", async () => {
    const kind = newKind();
    let calls = 0;
    const slow = noting(kind, { before: () => sleep(300) as Promise<void> });
    for (let i = 0; i < 3; i++) await put(randomUUID(), kind, [{ payload: 1 }]);
    start(slow, { runsMax: 2, callOthers: () => void calls++ });
    await allDone(kind, 3);
    expect(calls).toBeGreaterThan(0);
    expect(calls).toBeLessThan(20);
  });

  test("that stops ends the runs in work and begins no other", async () => {
    const kind = newKind();
    const started: string[] = [];
    const blocked = Promise.withResolvers<void>();
    const before = async (jobs: readonly Job[]) => {
      started.push(...jobs.map(({ id }) => id));
      await blocked.promise;
    };
    await put(randomUUID(), kind, [
      { payload: 1, id: "a" },
      { payload: 1, id: "b" },
    ]);
    const { stop } = start(noting(kind, { before }), { runsMax: 1 });
    await until(() => started.length === 1);
    const stopping = stop();
    blocked.resolve();
    await stopping;
    expect((await doneOf(kind)).map(({ id }) => id)).toEqual(["a"]);
    // By then it would have begun: another worker, called later, has looked and run.
    const other = newKind();
    await put(randomUUID(), other, [{ payload: 1 }]);
    start(noting(other));
    await allDone(other, 1);
    expect(started).toEqual(["a"]);
    expect(await leftOf(kind)).toBe(1);
  });
});

describe("turns", () => {
  test("no tenant's job runs twice before all that have work had one, beside one with very many jobs", async () => {
    const kind = newKind();
    const heavy = randomUUID();
    const jobs = 10_000;
    const tenants = 300;
    await sql`
      insert into jobs (tenant_id, kind, id, payload, size, due_ms, created_ms, fence, lease_until_ms, failures)
      select case when n <= ${jobs}::int4 then ${heavy}::uuid else gen_random_uuid() end, ${kind}, n::text, '{}', 1,
        least(n, ${jobs + 1}::int4), 0, 0, 0, 0
      from generate_series(1, ${jobs + tenants - 1}::int4) as n`;
    await sql`insert into due_work select tenant_id, kind, min(due_ms) from jobs where kind = ${kind} group by 1, 2`;
    const order: string[] = [];
    const all = Promise.withResolvers<void>();
    const made = start({
      name: kind,
      sizeMax: 1,
      async run(_tx, tenantId) {
        order.push(tenantId);
        if (order.length === tenants + 2) all.resolve();
        return [];
      },
    });
    await all.promise;
    await made.stop();
    // Runs begin in turn; one that goes on beside others may be passed by them until its jobs are claimed.
    expect(new Set(order.slice(0, tenants)).size).toBeGreaterThan(tenants - pool.counts.background);
    expect(new Set(order).size).toBe(tenants);
    await sql`delete from jobs where kind = ${kind}`;
  }, 120_000);

  test("there is room for kinds that are due at a time while others take all they can", async () => {
    const [slow, timed] = [newKind(), newKind()];
    const blocked = Promise.withResolvers<void>();
    const tenants = Array.from({ length: 8 }, () => randomUUID());
    for (const each of tenants) await put(each, slow, [{ payload: {} }]);
    const [full, ran] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const kinds: JobKind[] = [
      { name: slow, sizeMax: 1, run: () => blocked.promise.then(() => []) },
      {
        name: timed,
        sizeMax: 1,
        timed: true,
        async run() {
          ran.resolve();
          return [];
        },
      },
    ];
    const made = start(kinds, { callOthers: full.resolve });
    await full.promise;
    await put(randomUUID(), timed, [{ payload: {} }]);
    made.wake();
    await ran.promise;
    blocked.resolve();
  });
});
