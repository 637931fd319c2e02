import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const occurrences = 8000;
// Counting them anew for each of them took five times as long as this.
const server = await testServer({ BELFRY_STATEMENT_TIMEOUT_MS: "5000" });
const { sql } = server.database;

test("an event with thousands of occurrences is answered whole, with their number, well within a statement's time", async () => {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  await call("POST", "/v1/data-receiver/events", {
    events: [{ name: "flaps", timestamp: Date.now(), dimensions: { source: "a" }, status: "STATUS_CLOSED" }],
  });
  await sql`
    insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, end_ms, instance_count)
    select o.tenant_id, o.event_id, n, o.severity, o.status, false, '', '', '', '{}', o.start_ms - n, o.start_ms - n,
      o.start_ms - n, 1
    from occurrences o, generate_series(2, ${occurrences}) as n where o.tenant_id = ${tenant.id}`;
  const { status, body } = await call("POST", "/v1/events:search", { query: { fields: [{ field: "count" }] } });
  expect(status).toBe(200);
  expect(body.results).toHaveLength(1);
  expect(body.results[0].count).toBe(String(occurrences));
  expect(body.results[0].occurrences).toHaveLength(occurrences);
});
