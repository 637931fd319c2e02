import { execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";
import { connectOnce } from "../../src/db/connect.ts";
import { onCitus } from "../support/citus.ts";
import { program } from "../support/program.ts";
import { testServer } from "../support/server.ts";
import { notThereOnce, type SendingTenant, sendingTenants, tenantsAt } from "./sending-tenants.ts";

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

/** What a command that fails says. */
async function said(url: string, ...command: string[]): Promise<string> {
  const env = { ...process.env, DATABASE_URL: url };
  const failed = promisify(execFile)(process.execPath, [await program(), ...command], { env });
  return await failed.then(
    ({ stdout }) => `done: ${stdout}`,
    ({ stderr }) => stderr,
  );
}

/** Waits until it holds of each; what hangs ends. */
const eventually = (tenants: readonly SendingTenant[], holds: (tenant: SendingTenant) => boolean) =>
  expect.poll(() => tenants.filter((each) => !holds(each)).map(({ id }) => id), { timeout: 60_000 }).toEqual([]);

/** Waits until some more of what each sends is acknowledged and notified. */
async function goesOn(tenants: readonly SendingTenant[], more = 10) {
  const before = new Map(tenants.map(({ id, acknowledged }) => [id, acknowledged.length]));
  const last = ({ id, acknowledged }: SendingTenant) => acknowledged[(before.get(id) as number) + more];
  await eventually(tenants, (each) => {
    const name = last(each);
    return name !== undefined && each.arrived(name);
  });
}

test.runIf(onCitus)(
  "a worker that is killed keeps back its own tenants alone, and nothing acknowledged is lost",
  async () => {
    await using stack = new AsyncDisposableStack();
    const server = await testServer({ BELFRY_METRICS_ADDRESS: "0", BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8" });
    const { sql } = server.database;
    const load = await sendingTenants(server, 10, stack);
    const lost = (inject("database").nodes as string[]).at(-1) as string;
    const lostPort = Number(new URL(lost).port);
    const there = await tenantsAt(sql, lostPort);
    const own = load.tenants.filter(({ id }) => there.has(id));
    const others = load.tenants.filter(({ id }) => !there.has(id));
    expect(Math.min(others.length, own.length)).toBeGreaterThan(0);

    await goesOn(load.tenants);
    kill(await processesOf(lost));
    await eventually(own, ({ refused }) => refused.length > 20);
    await goesOn(others, 50);

    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    const up = (await (await fetch(server.metricsUrl as string)).text()).matchAll(
      /^belfry_database_worker_up\{worker="[^"]+:(\d+)"\} (\d)$/gm,
    );
    expect(new Map([...up].map(([, port, value]) => [Number(port), value])).get(lostPort)).toBe("0");
    const [other] = others as [SendingTenant];
    const client = await other.call("POST", "/v1/api-clients", { name: "agent", type: "DATA_INGEST" });
    expect(client.status).toBe(200);

    expect(await said(server.database.url, "tenants", "create", "late")).toMatch(
      /^belfry: a node of the database is away \([^\n]+\); new tenants and changes of the schema need every node, [^\n]+\n$/,
    );

    await startAgain();
    await goesOn(load.tenants);
    await load.stop();

    expect(others.flatMap(({ refused }) => refused)).toEqual([]);
    expect([...new Set(own.flatMap(({ refused }) => refused))]).toEqual(["503 14"]);
    await eventually(load.tenants, ({ acknowledged, arrived }) => acknowledged.every(arrived));
    await expect
      .poll(async () => (await Promise.all(load.tenants.map((each) => notThereOnce(sql, each)))).flat(), {
        timeout: 30_000,
      })
      .toEqual([]);
  },
);
