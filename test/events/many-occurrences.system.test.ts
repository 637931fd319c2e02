import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const occurrences = 8000;
// Counting them again for each of them took longer than this.
const server = await testServer({}, { statementTimeoutMs: 20_000 });
const { sql } = server.database;

test("of an event with thousands of matching occurrences the first thousand are answered, with the number of all", async () => {
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
  expect(body.results[0].matchedCount).toBe(String(occurrences));
  expect(body.results[0].occurrences).toHaveLength(1000);
});

test("a page ends before its occurrences are more than ten thousand, and the next ones hold the others", async () => {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  const names = Array.from({ length: 13 }, (_, i) => `flaps ${String(i).padStart(2, "0")}`);
  const timestamp = Date.now();
  const dimensions = { source: "a" };
  await call("POST", "/v1/data-receiver/events", {
    events: names.map((name) => ({ name, timestamp, dimensions, status: "STATUS_CLOSED" })),
  });
  await sql`
    insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, end_ms, instance_count)
    select o.tenant_id, o.event_id, n, o.severity, o.status, false, '', '', '', '{}', o.start_ms - n, o.start_ms - n,
      o.start_ms - n, 1
    from occurrences o, generate_series(2, 1500) as n where o.tenant_id = ${tenant.id}`;
  const page = async (pageInput: object) => {
    const sortBy = [{ byField: { field: "name" } }];
    const { body } = await call("POST", "/v1/events:search", {
      query: { sortBy, fields: [{ field: "name" }], pageInput },
    });
    return { names: body.results.map(({ name }: { name: string }) => name), info: body.pageInfo };
  };
  const first = await page({});
  expect(first).toMatchObject({ names: names.slice(0, 10), info: { hasNext: true, totalCount: "13", count: "10" } });
  const second = await page({ cursor: first.info.endCursor });
  expect(second).toMatchObject({ names: names.slice(10), info: { hasNext: false, hasPrev: true, totalCount: "13" } });
  const back = await page({ cursor: second.info.startCursor, direction: "DIRECTION_BACKWARD" });
  expect(back).toMatchObject({ names: names.slice(0, 10), info: { hasPrev: false, totalCount: "13" } });
});
