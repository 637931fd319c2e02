import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { consumed } from "../support/consumed.ts";
import { testDatabase } from "../support/database.ts";
import { namesOf, notifiedTenant, startedServer } from "./notified-tenant.ts";
import type { ServerProcess } from "./server-process.ts";

const { sql, url } = await testDatabase();

/** A tenant whose rule notifies a receiver of every event. */
async function notifying(server: ServerProcess) {
  const { tenant, receiver, make, put } = await notifiedTenant(sql, server);
  const clause = { equals: { field: "severity", value: { stringVal: "SEVERITY_ERROR" } } };
  await make("triggers", { name: "t", type: { event: { query: { clause } } } });
  await make("rules", { name: "r", enabled: true, triggerNames: ["t"], destinationNames: ["d"] });
  return {
    tenant,
    put,
    make,
    silence: (ms: number, host: string) =>
      make("silences", { matchers: [`host=${host}`], endsAt: String(Date.now() + ms), comment: "c" }),
    /** The names of the events of the messages that have arrived. */
    arrived: () => receiver.received.map(({ body }) => (JSON.parse(body) as { event: { name: string } }).event.name),
  };
}

test("a server that dies when a silence ends sends what it held, each once", async () => {
  const server = await startedServer(url, 1);
  const { silence, put, arrived, tenant } = await notifying(server);
  const all: string[] = [];
  for (const [i, at] of ["deliveries:claimed", "silences:released", "transaction:committed"].entries()) {
    const own = namesOf(`h${i}`, 30);
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
    await expect.poll(() => arrived().length).toBe(all.length);
  }
  await sleep(500);
  expect(arrived().sort()).toEqual(all.sort());
});

test("a silence is in force on all of three processes for every event that is sent after its answer", async () => {
  const server = await startedServer(url, 3);
  const { silence, put, arrived, tenant } = await notifying(server);
  for (let i = 0; i < 20; i++) {
    await silence(3_600_000, `h${i}`);
    // Each call is a connection of its own, which any of the processes may take.
    await Promise.all(namesOf(`h${i}`, 9).map((name) => put(`h${i}`, [name])));
  }
  await put("loud", ["loud"]);
  await consumed(sql, tenant.id);
  await expect.poll(arrived).toEqual(["loud"]);
  const [row] = await sql<{ held: number }[]>`
    select count(*)::int4 as held from due_deliveries where tenant_id = ${tenant.id} and silence_id is not null`;
  expect(row?.held).toBe(180);
});

test("1,000 silences of 10,000 open occurrences that end in one second keep no loop longer than 250 ms", async () => {
  const server = await startedServer(url, 1);
  const { tenant, make, put, arrived } = await notifying(server);
  const endsAt = String(Date.now() + 120_000);
  const hosts = Array.from({ length: 1000 }, (_, i) => `h${i}`);
  await server.longestTurn();
  for (let from = 0; from < hosts.length; from += 20) {
    const some = hosts.slice(from, from + 20);
    await Promise.all(some.map((host) => make("silences", { matchers: [`host=~${host}`], endsAt, comment: "c" })));
  }
  for (const host of hosts) await put(host, namesOf(host, 10));
  await consumed(sql, tenant.id);
  const endMs = Date.now() + 1000;
  await sql`update due_deliveries set due_ms = ${endMs} where tenant_id = ${tenant.id}`;
  await sql`update silences set ends_ms = ${endMs} where tenant_id = ${tenant.id}`;
  await sql`update tenant_state set rules_version = rules_version + 2000 where tenant_id = ${tenant.id}`;
  await sql`update due_work set due_ms = ${endMs} where tenant_id = ${tenant.id}`;
  expect(arrived()).toEqual([]);
  // Each at least once: on a machine that was busy with something else 294 came twice.
  await expect.poll(() => new Set(arrived()).size).toBe(10_000);
  const { ms } = await server.longestTurn();
  expect(ms).toBeLessThan(250);
});
