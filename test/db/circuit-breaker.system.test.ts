import { rmSync } from "node:fs";
import { createServer, connect as dial, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { connect, destinationOf, type Pool, type PoolOptions } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { type Embedded, startEmbedded } from "../../src/embedded/embedded.ts";
import { clusterDir, poolOptions } from "../support/database.ts";

const quiet = { info() {}, warn() {}, error() {} };
const dataDir = clusterDir();
let embedded: Embedded = await startEmbedded({ dataDir, log: quiet, durable: false });
const { url } = embedded;

afterAll(async () => {
  await embedded.stop("immediate");
  rmSync(dataDir, { recursive: true, force: true });
});

async function restart() {
  embedded = await startEmbedded({ dataDir, log: quiet, durable: false });
}

function open(address = url, options: Partial<PoolOptions> = {}): Pool {
  const pool = connect(address, poolOptions(options));
  onTestFinished(() => pool.close());
  return pool;
}

/** The code of a call through the gate (0: it succeeded), and whether it began: one that is refused at once does not. */
async function outcome(pool: Pool, call: () => Promise<unknown>) {
  let began = false;
  const noted = () => {
    began = true;
    return call();
  };
  const code = await pool.gate.run(noted, {}).then(
    () => 0,
    (error) => ConnectError.from(error).code,
  );
  return { code, began };
}

const refusedAtOnce = { code: Code.Unavailable, began: false };

const read = (pool: Pool) => () => pool.sql`select 1`.then(() => undefined);

async function untilServed(pool: Pool): Promise<void> {
  while ((await outcome(pool, read(pool))).code !== 0) await sleep(10);
}

test("PostgreSQL stopped: the next calls are answered 14, also 50 at once, and do not begin; started: served by itself", async () => {
  const pool = open();
  await untilServed(pool);
  await embedded.stop("fast");
  const answers = await Promise.all(Array.from({ length: 50 }, () => outcome(pool, read(pool))));
  for (const { code } of answers) expect(code).toBe(Code.Unavailable);
  expect(await outcome(pool, read(pool))).toEqual(refusedAtOnce);
  expect(await outcome(pool, () => transaction(pool.sql, async (tx) => await tx`select 1`))).toEqual(refusedAtOnce);
  expect(pool.gate.open).toBe(false);
  expect(() => pool.gate.check()).toThrow(ConnectError);
  await restart();
  await untilServed(pool);
});

test("a pool that never had a connection refuses as well, and serves by itself", async () => {
  await embedded.stop("fast");
  const pool = open();
  const answers = await Promise.all(Array.from({ length: 50 }, () => outcome(pool, read(pool))));
  for (const { code } of answers) expect(code).toBe(Code.Unavailable);
  await restart();
  await untilServed(pool);
});

test("kill -9 of PostgreSQL under load: every call ends, none is lost that was acknowledged, service comes back", async () => {
  const pool = open();
  await pool.sql`create table if not exists ledger (id bigint primary key, n int not null)`;
  const acknowledged = new Set<bigint>();
  let next = 0n;
  let running = true;
  const codes = new Map<number, number>();

  async function client(i: number) {
    while (running) {
      const id = next++;
      const single = async () => void (await pool.sql`insert into ledger values (${id}, 1)`);
      const several = () =>
        transaction(pool.sql, async (tx) => {
          await tx`insert into ledger values (${id}, 1)`;
          // Work between two statements, in which the connection may break as well.
          if (i % 4 === 1) await sleep(1);
          await Promise.all([tx`update ledger set n = 2 where id = ${id}`, tx`select pg_sleep(0.002)`]);
          if (i % 4 === 3) await sleep(1);
        });
      const { code } = await outcome(pool, i % 2 === 0 ? single : several);
      codes.set(code, (codes.get(code) ?? 0) + 1);
      if (code === 0) acknowledged.add(id);
      else await sleep(2);
    }
  }
  const clients = Array.from({ length: 24 }, (_, i) => client(i));
  for (let round = 0; round < 5; round++) {
    await sleep(150);
    process.kill(embedded.pid as number, round % 2 === 0 ? "SIGKILL" : "SIGQUIT");
    await sleep(100);
    await untilServed(pool);
  }
  running = false;
  await Promise.all(clients);
  const rows = await pool.sql<{ id: bigint }[]>`select id from ledger`;
  const stored = new Set(rows.map(({ id }) => id));
  expect([...acknowledged].filter((id) => !stored.has(id))).toEqual([]);
  expect(acknowledged.size).toBeGreaterThan(100);
  expect([...codes.keys()].filter((code) => code !== 0 && code !== Code.Unavailable)).toEqual([]);
});

test("a connection that the server ends takes its own call along, and no other", async () => {
  const pool = open();
  await untilServed(pool);
  const victim = outcome(pool, () => pool.sql`select pg_sleep(5) as victim`.then(() => undefined));
  const neighbour = outcome(pool, () => pool.sql`select pg_sleep(0.3)`.then(() => undefined));
  await sleep(100);
  await pool.sql`select pg_terminate_backend(pid) from pg_stat_activity where query like '%as victim' and pid <> pg_backend_pid()`;
  expect((await victim).code).toBe(Code.Unavailable);
  expect((await neighbour).code).toBe(0);
  expect(pool.gate.open).toBe(true);
});

/** What stands between a pool and PostgreSQL, and passes on what they send while it is not silent. */
async function startProxy() {
  const live = new Set<Socket>();
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
  const state = { silent: false };
  const proxy = createServer((near) => {
    const far = dial(destinationOf(url));
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      live.add(from);
      from.on("data", (bytes) => void (state.silent || to.write(bytes)));
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
    }
    reach();
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of live) socket.destroy();
    proxy.close();
  });
  const address = url.replace(/@.*\//, `@127.0.0.1:${(proxy.address() as { port: number }).port}/`);
  return { address, state, reached };
}

test("a process that is busy itself while it connects does not take the database for away", async () => {
  const proxy = await startProxy();
  const pool = open(proxy.address);
  await proxy.reached;
  // Longer than the driver gives a connection.
  const busyUntil = performance.now() + 5500;
  while (performance.now() < busyUntil);
  await sleep(50);
  expect(pool.gate.open).toBe(true);
  expect((await outcome(pool, read(pool))).code).toBe(0);
});

test("a server that falls silent is taken for away, and calls in work are answered", async () => {
  const { address, state } = await startProxy();
  const pool = open(address);
  await untilServed(pool);
  state.silent = true;
  const waiting = await Promise.all(Array.from({ length: 40 }, () => outcome(pool, read(pool))));
  for (const { code } of waiting) expect(code).toBe(Code.Unavailable);
  expect(await outcome(pool, read(pool))).toEqual(refusedAtOnce);
  state.silent = false;
  await untilServed(pool);
});

test("calls in work are bounded: one more is answered 8 at once, and a place that is left is given again", async () => {
  const pool = open(url, { waitingCallsMax: 3 });
  await untilServed(pool);
  const other = open();
  const three = await transaction(other.sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(7)`;
    const held = Array.from({ length: 3 }, () =>
      outcome(pool, () => pool.sql`select pg_advisory_xact_lock_shared(7)`.then(() => undefined)),
    );
    expect(await outcome(pool, read(pool))).toEqual({ code: Code.ResourceExhausted, began: false });
    return { held };
  });
  expect((await Promise.all(three.held)).map(({ code }) => code)).toEqual([0, 0, 0]);
  expect((await outcome(pool, read(pool))).code).toBe(0);
});
