import { expect } from "vitest";
import type { Sql } from "../../src/db/connect.ts";
import { notifiedTenant } from "./notified-tenant.ts";
import type { ServerProcess } from "./server-process.ts";

const kind = "notifications.groups";

/** A tenant whose rule makes one message a host of every event. */
export async function grouping(sql: Sql, server: ServerProcess, waitSec: number) {
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
export async function waiting(sql: Sql, tenantId: string, count: number) {
  const groups = async () =>
    (await sql`select from alert_groups where tenant_id = ${tenantId} and flushed_ms is null`).count;
  await expect.poll(groups).toBe(count);
}

/** Waits until all that rules have matched is taken into groups. */
export async function taken(sql: Sql, tenantId: string) {
  const jobs = async () =>
    (await sql`select from jobs where tenant_id = ${tenantId} and kind = ${kind} and payload -> 'keys' <> '[]'`).count;
  await expect.poll(jobs).toBe(0);
}

/** Has the wait of a tenant's groups, an hour, end at a time. */
export async function endWait(sql: Sql, tenantId: string, dueMs: number) {
  await sql`
    update group_members set joins_ms = ${dueMs - 3_600_000} where tenant_id = ${tenantId} and sent_to = '{}'`;
  await sql`update alert_groups set due_ms = ${dueMs} where tenant_id = ${tenantId} and flushed_ms is null`;
  await sql`update jobs set due_ms = ${dueMs} where tenant_id = ${tenantId} and kind = ${kind} and lease_until_ms = 0`;
  await sql`update due_work set due_ms = ${dueMs} where tenant_id = ${tenantId} and kind = ${kind}`;
}

/** A tenant whose rule notifies a receiver of every event. */
export async function notifying(sql: Sql, server: ServerProcess) {
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
