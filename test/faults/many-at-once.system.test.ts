import { expect, test } from "vitest";
import { nightly } from "../support/cases.ts";
import { consumed } from "../support/consumed.ts";
import { testDatabase } from "../support/database.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { endWait, grouping, notifying, taken, waiting } from "./grouped-tenant.ts";
import { namesOf, startedServer } from "./notified-tenant.ts";

const { sql, url } = await testDatabase();
/** Each occurrence is a message of its own. */
const silences = nightly ? 1000 : 400;

test(`${silences} silences of ${10 * silences} open occurrences that end in one second keep no loop longer than 250 ms`, async () => {
  const server = await startedServer(url, 1);
  const { tenant, make, put, arrived } = await notifying(sql, server);
  const endsAt = String(Date.now() + 120_000);
  const hosts = Array.from({ length: silences }, (_, i) => `h${i}`);
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
  await sql`update tenant_state set rules_version = rules_version + ${2 * silences} where tenant_id = ${tenant.id}`;
  await sql`update due_work set due_ms = ${endMs} where tenant_id = ${tenant.id}`;
  expect(arrived()).toEqual([]);
  // Each at least once: on a machine that was busy with something else 294 came twice.
  await expect.poll(() => new Set(arrived()).size).toBe(10 * silences);
  const { ms } = await server.longestTurn();
  expect(ms).toBeLessThan(turnMsMax);
});

test("1,000 groups of 10,000 members that are flushed in one second keep no loop longer than 250 ms, and are decided in a few runs", async () => {
  const server = await startedServer(url, 1);
  const { tenant, put, arrived, unnamed } = await grouping(sql, server, 3600);
  const hosts = Array.from({ length: 1000 }, (_, i) => `h${i}`);
  await server.longestTurn();
  for (const host of hosts) await put(host, namesOf(host, 10));
  await consumed(sql, tenant.id);
  await waiting(sql, tenant.id, 1000);
  await taken(sql, tenant.id);
  const dueMs = Date.now() + 1000;
  await endWait(sql, tenant.id, dueMs);
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
  expect(ms).toBeLessThan(turnMsMax);
  expect(await unnamed(hosts.flatMap((host) => namesOf(host, 10)))).toEqual([]);
});
