import { expect } from "vitest";
import { consumed } from "../../support/consumed.ts";
import type { TestServer } from "../../support/server.ts";
import { silencePlace } from "../silences/place.ts";

type Json = Record<string, unknown>;

/** A tenant whose receiver keeps whole bodies. */
export async function groupPlace(given?: TestServer) {
  const place = await silencePlace(given);
  const { receiver, ok, server, tenant } = place;
  const { sql } = server.database;
  const bodies = () =>
    receiver.received.map(({ body }) => JSON.parse(body) as Json & { alerts: Json[]; event: Json | null });
  return {
    ...place,
    bodies,
    /** Waits until so many messages have arrived. */
    async arrive(count: number) {
      await expect.poll(() => receiver.received.length, { interval: 20 }).toBeGreaterThanOrEqual(count);
      return bodies();
    },
    /** Has the groups flushed, once what was reported is taken in; resolves when they were looked at. */
    async flushed() {
      await consumed(sql, tenant.id);
      const left = async (isDue: boolean) =>
        (
          await sql`
            select from jobs where tenant_id = ${tenant.id} and kind = 'notifications.groups'
              and case when ${isDue} then due_ms = 0 else payload -> 'keys' <> '[]' end`
        ).count;
      await expect.poll(() => left(false), { interval: 20 }).toBe(0);
      await sql`update alert_groups set due_ms = 0, flushed_ms = 0 * flushed_ms, repeat_ms = 0 * repeat_ms where tenant_id = ${tenant.id}`;
      await sql`update jobs set due_ms = 0 where tenant_id = ${tenant.id} and lease_until_ms = 0`;
      await sql`update due_work set due_ms = 0 where tenant_id = ${tenant.id}`;
      await expect.poll(() => left(true), { interval: 20 }).toBe(0);
    },
    reportAll: (names: readonly string[], more: Json = {}) =>
      ok("POST", "/v1/data-receiver/events", {
        events: names.map((name) => ({
          name,
          // Ahead, so that no wait is over however late it is looked at.
          timestamp: String(Date.now() + 60_000),
          dimensions: { source: "web" },
          severity: "SEVERITY_ERROR",
          status: "STATUS_OPEN",
          ...more,
        })),
      }),
  };
}
