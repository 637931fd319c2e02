import { execFile } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { createServer, connect as dial } from "node:net";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { connectOnce, destinationOf, type Sql } from "../../src/db/connect.ts";
import { distribute } from "../../src/db/distribute.ts";
import { migrate } from "../../src/db/migrate.ts";
import { onCitus, startCluster } from "../support/citus.ts";
import { temporaryDir } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { firstProcessIn, pidFileOf } from "./citus-cluster.ts";
import { killProcesses } from "./postgres-process.ts";
import { notThereOnce, type SendingTenant, sendingTenants, tenantsAt } from "./sending-tenants.ts";
import { freePort, serverProcess } from "./server-process.ts";

/** As root, PostgreSQL runs as another account. */
const account = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
const ran = promisify(execFile);

const portOf = (url: string) => Number(new URL(url).port);

/** A standby of a node, without which the node confirms no commit. `programs`: the folder of PostgreSQL's. */
async function standbyOf(url: string, programs: string, dir: string, stack: AsyncDisposableStack) {
  const run = (program: string, ...parameters: string[]) =>
    ran(join(programs, program), parameters, { ...account, cwd: "/" });
  const port = await freePort();
  const { hostname, username } = new URL(url);
  const from = `host=${hostname} port=${portOf(url)} user=${username} application_name=standby`;
  await run("pg_basebackup", "-D", dir, "-d", from, "-R", "-c", "fast", "--no-sync");
  appendFileSync(join(dir, "postgresql.auto.conf"), `port = ${port}\n`);
  await run("pg_ctl", "-D", dir, "-l", `${dir}.log`, "-w", "start");
  stack.defer(() => killProcesses(firstProcessIn(join(dir, "postmaster.pid"))));
  const { sql, close } = connectOnce(url, "test");
  await sql`alter system set synchronous_standby_names = 'standby'`;
  await sql`select pg_reload_conf()`;
  await expect.poll(() => sql`select 1 from pg_stat_replication where sync_state = 'sync'`).toHaveLength(1);
  await close();
  return {
    url: Object.assign(new URL(url), { port: String(port) }).href,
    promote: () => run("pg_ctl", "-D", dir, "-w", "promote"),
  };
}

/** One address that leads to a node, and later to another one, as that of a proxy does. */
async function forward(to: string, stack: AsyncDisposableStack) {
  const way = { to, url: "" };
  const server = createServer({ noDelay: true }, (client) => {
    const node = dial({ ...destinationOf(way.to), noDelay: true });
    client.pipe(node).pipe(client);
    for (const [one, other] of [
      [client, node],
      [node, client],
    ] as const)
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => void server.close());
  way.url = Object.assign(new URL(to), { port: String((server.address() as { port: number }).port) }).href;
  return way;
}

/** Waits until some more of what each sends is acknowledged and notified. */
async function goesOn(tenants: readonly SendingTenant[]) {
  const before = tenants.map(({ acknowledged }) => acknowledged.length + 10);
  const waits = () => tenants.filter((each, i) => !each.arrived(each.acknowledged[before[i] as number] ?? ""));
  await expect.poll(() => waits().map(({ id }) => id)).toEqual([]);
}

/**
 * Kills a node, has its standby replace it, and waits until what these tenants send is acknowledged again. Prints after how many
 * milliseconds that was, and `replace` done.
 */
async function failOver(node: string, tenants: readonly SendingTenant[], replace: () => Promise<void>) {
  await killProcesses(firstProcessIn(await pidFileOf(node)));
  const killedMs = performance.now();
  const sinceMs = () => Math.round(performance.now() - killedMs);
  // The answer to one request of each may still have been on its way.
  const before = tenants.map(({ acknowledged }) => acknowledged.length + 1);
  const served = tenants.map(async ({ acknowledged }, i) => {
    await expect.poll(() => acknowledged.length, { interval: 5, timeout: 60_000 }).toBeGreaterThan(before[i] as number);
    return sinceMs();
  });
  await replace();
  const replacedMs = sinceMs();
  const times = (await Promise.all(served)).sort((a, b) => a - b);
  console.log(`replaced after ${replacedMs} ms, tenants served after ${times.join(", ")} ms`);
  await goesOn(tenants);
}

const replaceNode = ({ sql }: { sql: Sql }, from: string, to: string) => sql`
  select citus_update_node(nodeid, nodename, ${portOf(to)}::int4) from pg_dist_node where nodeport = ${portOf(from)}::int4`;

test.runIf(onCitus)("nothing acknowledged is lost when a standby replaces a node that is killed", async () => {
  await using stack = new AsyncDisposableStack();
  const dir = temporaryDir();
  const { urls, start, stop } = await startCluster(process.env.TEST_CITUS as string, dir);
  stack.defer(stop);
  const [coordinator, , worker] = urls as [string, string, string];
  await migrate(coordinator);
  await distribute(coordinator, 8);
  const programs = join(dirname(start[0] as string), "bin");
  const ofWorker = await standbyOf(worker, programs, join(dir, "nodes/worker"), stack);
  const ofCoordinator = await standbyOf(coordinator, programs, join(dir, "nodes/coordinator"), stack);
  const way = await forward(coordinator, stack);
  const server = await serverProcess({
    DATABASE_URL: way.url,
    BELFRY_DATA_DIR: temporaryDir(),
    BELFRY_MASTER_KEYS: masterKeys,
    BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8",
  });
  await server.start();
  stack.defer(server.stop);
  const [first, second] = [connectOnce(coordinator, "test"), connectOnce(ofCoordinator.url, "test")];
  stack.defer(first.close);
  stack.defer(second.close);
  const load = await sendingTenants({ url: server.url, database: first }, 8, stack);
  const there = await tenantsAt(first.sql, portOf(worker));
  const own = load.tenants.filter(({ id }) => there.has(id));
  const others = load.tenants.filter(({ id }) => !there.has(id));
  expect(Math.min(own.length, others.length)).toBeGreaterThan(0);
  await goesOn(load.tenants);

  await failOver(worker, own, async () => {
    await ofWorker.promote();
    await replaceNode(first, worker, ofWorker.url);
  });
  expect(others.flatMap(({ refused }) => refused)).toEqual([]);

  await failOver(coordinator, load.tenants, async () => {
    await ofCoordinator.promote();
    await replaceNode(second, coordinator, ofCoordinator.url);
    way.to = ofCoordinator.url;
  });
  await load.stop();
  console.log(`acknowledged: ${load.tenants.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0)} events`);

  expect(new Set(load.tenants.flatMap(({ refused }) => refused))).toEqual(new Set(["503 14"]));
  await expect
    .poll(async () => (await Promise.all(load.tenants.map((each) => notThereOnce(second.sql, each)))).flat())
    .toEqual([]);
  // For which every node is needed.
  await testTenant(second.sql);
});
