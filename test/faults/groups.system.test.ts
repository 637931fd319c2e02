import { expect, test } from "vitest";
import { consumed } from "../support/consumed.ts";
import { testDatabase } from "../support/database.ts";
import { drained } from "./notifications.ts";
import { namesOf, notifiedTenant, startedServer } from "./notified-tenant.ts";
import type { ServerProcess } from "./server-process.ts";

const { sql, url } = await testDatabase();
const kind = "notifications.groups";

/** A tenant whose rule makes one message a host of every event. */
async function grouping(server: ServerProcess, waitSec: number) {
  const { tenant, receiver, make, put } = await notifiedTenant(sql, server);
  await make("rules", {
    name: "r",
    enabled: true,
    matchers: ["severity=error"],
    destinationNames: ["d"],
    grouping: { by: ["host"], waitSec: String(waitSec), intervalSec: "3600" },
  });
  return {
    tenant,
    // Ahead, so that no wait is over however late it is looked at.
    put: (host: string, names: readonly string[]) => put(host, names, 60_000),
    /** The messages that arrived: host and number of members, each once however often it was tried. */
    arrived() {
      const messages = new Map(
        receiver.received.map(({ headers, body }) => {
          const { group_labels: labels, count } = JSON.parse(body) as { group_labels: { host: string }; count: number };
          return [headers["webhook-id"], `${labels.host} ${count}`];
        }),
      );
      return [...messages.values()].sort();
    },
    /** Names that no record of a message has, of these. */
    async unnamed(names: readonly string[]) {
      const rows = await sql<{ name: string }[]>`
        select distinct e.name from group_message_members m
          join events e on e.tenant_id = ${tenant.id} and e.id = m.event_id
        where m.tenant_id = ${tenant.id} and not m.resolved`;
      const named = new Set(rows.map(({ name }) => name));
      return names.filter((name) => !named.has(name));
    },
  };
}

/** As many groups of a tenant as there should be, with a wait of an hour each. */
async function waiting(tenantId: string, count: number) {
  const groups = async () =>
    (await sql`select from alert_groups where tenant_id = ${tenantId} and flushed_ms is null`).count;
  await expect.poll(groups).toBe(count);
}

/** Waits until all that rules have matched is taken into groups. */
async function taken(tenantId: string) {
  const jobs = async () =>
    (await sql`select from jobs where tenant_id = ${tenantId} and kind = ${kind} and payload -> 'keys' <> '[]'`).count;
  await expect.poll(jobs).toBe(0);
}

/** Has the wait of a tenant's groups, an hour, end at a time. */
async function endWait(tenantId: string, dueMs: number) {
  await sql`
    update group_members set joins_ms = ${dueMs - 3_600_000} where tenant_id = ${tenantId} and sent_to = '{}'`;
  await sql`update alert_groups set due_ms = ${dueMs} where tenant_id = ${tenantId} and flushed_ms is null`;
  await sql`update jobs set due_ms = ${dueMs} where tenant_id = ${tenantId} and kind = ${kind} and lease_until_ms = 0`;
  await sql`update due_work set due_ms = ${dueMs} where tenant_id = ${tenantId} and kind = ${kind}`;
}

test("500 alerts are one message over a death in the wait, in the flush and in the send", async () => {
  const server = await startedServer(url, 1);
  const { tenant, put, arrived, unnamed } = await grouping(server, 3600);
  const expected: string[] = [];
  const all: string[] = [];
  for (const at of ["wait", "groups:flushed", "deliveries:claimed", "deliveries:sent", "deliveries:recorded"]) {
    const host = at.replace(":", "-");
    const own = namesOf(host, 500);
    all.push(...own);
    await put(host, own.slice(0, 250));
    await put(host, own.slice(250));
    await consumed(sql, tenant.id);
    await waiting(tenant.id, 1);
    if (at === "wait") {
      // A job that takes in some of them may die with it.
      await server.kill();
      await endWait(tenant.id, Date.now());
    } else {
      await taken(tenant.id);
      await server.arm({ points: { [at]: { act: "die" } } });
      await endWait(tenant.id, Date.now());
      await server.ended();
    }
    await server.start();
    expected.push(`${host} 500`);
    await expect.poll(arrived).toEqual(expected.toSorted());
  }
  await drained(sql);
  expect(arrived()).toEqual(expected.toSorted());
  expect(await unnamed(all)).toEqual([]);
});

test("500 alerts that any of three processes takes are one message", async () => {
  const server = await startedServer(url, 3);
  const { put, arrived, unnamed } = await grouping(server, 15);
  const all = namesOf("h", 500);
  await Promise.all(Array.from({ length: 50 }, (_, i) => put("h", all.slice(i * 10, i * 10 + 10))));
  await expect.poll(arrived).toEqual(["h 500"]);
  await drained(sql);
  expect(arrived()).toEqual(["h 500"]);
  expect(await unnamed(all)).toEqual([]);
});

test("1,000 groups of 10,000 members that are flushed in one second keep no loop longer than 250 ms, and are decided in a few runs", async () => {
  const server = await startedServer(url, 1);
  const { tenant, put, arrived, unnamed } = await grouping(server, 3600);
  const hosts = Array.from({ length: 1000 }, (_, i) => `h${i}`);
  await server.longestTurn();
  for (const host of hosts) await put(host, namesOf(host, 10));
  await consumed(sql, tenant.id);
  await waiting(tenant.id, 1000);
  await taken(tenant.id);
  const dueMs = Date.now() + 1000;
  await endWait(tenant.id, dueMs);
  const decided = async () =>
    (await sql`select from alert_groups where tenant_id = ${tenant.id} and flushed_ms is not null`).count;
  await expect.poll(decided, { timeout: 120_000, interval: 100 }).toBe(1000);
  await expect.poll(() => arrived().length).toBe(1000);
  const { ms } = await server.longestTurn();
  const [row] = await sql<{ runs: number }[]>`
    select count(distinct created_ms)::int4 as runs from (
      select created_ms from delivery_history where tenant_id = ${tenant.id}
      union all select created_ms from due_deliveries where tenant_id = ${tenant.id}) as decided`;
  // Each takes 200 groups.
  expect(row?.runs).toBeLessThanOrEqual(6);
  expect(ms).toBeLessThan(250);
  expect(await unnamed(hosts.flatMap((host) => namesOf(host, 10)))).toEqual([]);
});
