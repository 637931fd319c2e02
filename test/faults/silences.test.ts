import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { consumed } from "../support/consumed.ts";
import { testDatabase } from "../support/database.ts";
import { httpReceiver } from "../support/receivers.ts";
import { testTenant } from "../support/tenant.ts";
import { post } from "./notifications.ts";
import { clear, place } from "./place.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";

const { sql, url } = await testDatabase();

/** A tenant whose rule notifies a receiver of every event. */
async function notifying(server: ServerProcess) {
  const tenant = await testTenant(sql);
  const receiver = await httpReceiver();
  const make = (path: string, body: object) => post([server.url], tenant.headers, `notification/${path}`, body);
  const clause = { equals: { field: "severity", value: { stringVal: "SEVERITY_ERROR" } } };
  await make("triggers", { name: "t", type: { event: { query: { clause } } } });
  await make("destinations", { name: "d", type: { webhook: { url: receiver.url } } });
  await make("rules", { name: "r", enabled: true, triggerNames: ["t"], destinationNames: ["d"] });
  return {
    tenant,
    silence: (ms: number, host: string) =>
      make("silences", { matchers: [`host=${host}`], endsAt: String(Date.now() + ms), comment: "c" }),
    put: (host: string, names: readonly string[]) =>
      post([server.url], tenant.headers, "data-receiver/events", {
        events: names.map((name) => ({
          name,
          timestamp: String(Date.now()),
          dimensions: { host },
          severity: "SEVERITY_ERROR",
          status: "STATUS_OPEN",
        })),
      }),
    arrived: () => receiver.received.map(({ body }) => (JSON.parse(body) as { event: { name: string } }).event.name),
  };
}

async function started(env: Record<string, string>) {
  const dataDir = await place();
  const server = await serverProcess({
    BELFRY_DATA_DIR: dataDir,
    DATABASE_URL: url,
    BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8",
    ...env,
  });
  await server.start();
  afterAll(async () => {
    await server.stop();
    await clear(dataDir);
  });
  return server;
}

const names = (host: string, count: number) => Array.from({ length: count }, (_, i) => `${host} ${i}`);

test("a server that dies when a silence ends sends what it held, each once", async () => {
  const server = await started({ BELFRY_PROCESSES: "1" });
  const { silence, put, arrived, tenant } = await notifying(server);
  const all: string[] = [];
  for (const [i, at] of ["deliveries:claimed", "silences:released", "transaction:committed"].entries()) {
    const own = names(`h${i}`, 30);
    all.push(...own);
    await silence(4000, `h${i}`);
    await put(`h${i}`, own);
    await consumed(sql, tenant.id);
    const held = async () =>
      (await sql`select from due_deliveries where tenant_id = ${tenant.id} and silence_id is not null`).count;
    await expect.poll(held).toBe(30);
    await server.arm({ points: { [at]: { act: "die" } } });
    await server.ended();
    await server.start();
    await expect.poll(() => arrived().length, { timeout: 60_000 }).toBe(all.length);
  }
  await sleep(500);
  expect(arrived().sort()).toEqual(all.sort());
}, 200_000);

test("a silence is in force on all of three processes for every event that is sent after its answer", async () => {
  const server = await started({ BELFRY_PROCESSES: "3" });
  const { silence, put, arrived, tenant } = await notifying(server);
  for (let i = 0; i < 20; i++) {
    await silence(3_600_000, `h${i}`);
    // Each call is a connection of its own, which any of the processes may take.
    await Promise.all(names(`h${i}`, 9).map((name) => put(`h${i}`, [name])));
  }
  await put("loud", ["loud"]);
  await consumed(sql, tenant.id);
  await expect.poll(arrived, { timeout: 30_000 }).toEqual(["loud"]);
  const [row] = await sql<{ held: number }[]>`
    select count(*)::int4 as held from due_deliveries where tenant_id = ${tenant.id} and silence_id is not null`;
  expect(row?.held).toBe(180);
}, 100_000);
