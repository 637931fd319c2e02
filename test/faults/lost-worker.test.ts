import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { expect, inject, test } from "vitest";
import { connectOnce } from "../../src/db/connect.ts";
import { afterCommit, transaction } from "../../src/db/transaction.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { worker } from "../../src/jobs/worker.ts";
import { toAnswer } from "../../src/rpc/errors.ts";
import { testDatabase } from "../support/database.ts";
import { onCitus } from "../support/part.ts";
import { testTenant } from "../support/tenant.ts";

const kind = "lost-worker";

/** What a tenant has sent: ids that were acknowledged, and the codes that the others were answered with. */
interface Sent {
  acknowledged: string[];
  codes: number[];
}

/** The processes of the node at an address, its postmaster's first. */
async function processesOf(url: string): Promise<number[]> {
  const { sql, close } = connectOnce(url, "test");
  const [row] = await sql<[{ dir: string }]>`select current_setting('data_directory') as dir`;
  const pids = await sql<{ pid: number }[]>`select pid from pg_stat_activity where pid <> pg_backend_pid()`;
  await close();
  const postmaster = Number(readFileSync(`${row.dir}/postmaster.pid`, "utf8").split("\n", 1)[0]);
  return [postmaster, ...pids.map(({ pid }) => pid)];
}

function kill(pids: readonly number[]) {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
}

async function startAgain() {
  const [program, ...parameters] = inject("database").start as [string, ...string[]];
  const started = spawn(program, parameters, { stdio: "ignore" });
  await new Promise((resolve) => started.once("exit", resolve));
}

test.runIf(onCitus)(
  "a worker that is killed keeps back its own tenants alone, and nothing acknowledged is lost",
  async () => {
    const { pool, sql } = await testDatabase();
    const tenants = await Promise.all(Array.from({ length: 10 }, async () => (await testTenant(sql)).id));
    const nodes = inject("database").nodes as string[];
    const lost = nodes.at(-1) as string;
    const port = Number(new URL(lost).port);
    const rows = await sql<{ id: string }[]>`
    select t.id from tenants t join pg_dist_shard_placement p
      on p.shardid = get_shard_id_for_distribution_column('jobs', t.id) where p.nodeport = ${port}::int4`;
    const own = new Set(rows.map(({ id }) => id));
    const others = tenants.filter((id) => !own.has(id));
    expect(Math.min(others.length, own.size)).toBeGreaterThan(0);

    const done = new Map<string, number>();
    const jobs = worker(pool, {
      kinds: [
        {
          name: kind,
          sizeMax: 100,
          share: 1,
          run: async (tx, _tenantId, some) => {
            afterCommit(tx, () => {
              for (const { id } of some) done.set(id, (done.get(id) ?? 0) + 1);
            });
            return [];
          },
        },
      ],
      nowMs: () => Date.now(),
      log: pino({ level: "silent" }),
    });

    const sent = new Map(tenants.map((id): [string, Sent] => [id, { acknowledged: [], codes: [] }]));
    let sending = true;
    let number = 0;
    async function send(tenantId: string) {
      const { acknowledged, codes } = sent.get(tenantId) as Sent;
      while (sending) {
        const id = `job-${number++}`;
        try {
          await transaction(pool.ingest, (tx) => enqueue(tx, { tenantId, kind }, [{ id, payload: 1 }], Date.now()));
          acknowledged.push(id);
        } catch (error) {
          codes.push(toAnswer(error, "test").answer.code);
        }
        await sleep(20);
      }
    }
    const countOf = (some: readonly string[]) =>
      some.reduce((sum, id) => sum + (sent.get(id)?.acknowledged.length ?? 0), 0);
    const doneOf = (some: readonly string[]) =>
      some.flatMap((id) => sent.get(id)?.acknowledged ?? []).filter((id) => done.has(id)).length;

    const all = Promise.all(tenants.map(send));
    await expect.poll(() => countOf([...own]), { timeout: 20_000 }).toBeGreaterThan(5);
    kill(await processesOf(lost));
    await expect
      .poll(() => [...own].every((id) => (sent.get(id)?.codes.length ?? 0) > 3), { timeout: 20_000 })
      .toBe(true);
    const before = doneOf(others);
    await expect.poll(() => doneOf(others), { timeout: 20_000 }).toBeGreaterThan(before + 20);
    expect(pool.workers?.stats().filter(([, up]) => up)).toHaveLength(1);
    expect(pool.gate.open).toBe(true);
    const whileAway = countOf([...own]);
    await startAgain();
    await expect.poll(() => countOf([...own]), { timeout: 30_000 }).toBeGreaterThan(whileAway + 5);
    sending = false;
    await all;

    expect(others.flatMap((id) => sent.get(id)?.codes ?? [])).toEqual([]);
    expect(new Set([...own].flatMap((id) => sent.get(id)?.codes ?? []))).toEqual(new Set([14]));
    const acknowledged = tenants.flatMap((id) => sent.get(id)?.acknowledged ?? []);
    await expect.poll(() => acknowledged.every((id) => done.has(id)), { timeout: 30_000 }).toBe(true);
    expect(acknowledged.filter((id) => done.get(id) !== 1)).toEqual([]);
    await jobs.stop();
  },
);
