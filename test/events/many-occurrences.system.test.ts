import { expect, test } from "vitest";
import { sentStatements } from "../support/sent-statements.ts";
import { testServer } from "../support/server.ts";
import type { RanStatement } from "../support/statement-log.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const occurrences = 8000;
const server = await testServer({}, { statementTimeoutMs: 60_000 });
const { sql } = server.database;

/** Runs a statement once more, and returns how many pages it reads. */
async function pagesRead({ text, parameters = [] }: RanStatement): Promise<number> {
  const literal = (value: string | null | undefined) => (value == null ? "null" : `'${value.replaceAll("'", "''")}'`);
  const whole = text.replaceAll(/\$(\d+)/g, (_all, place) => literal(parameters[Number(place) - 1]));
  const [row] = await sql.unsafe(`explain (analyze, buffers, format json) ${whole}`);
  const { Plan: plan } = (row as unknown as { "QUERY PLAN": { Plan: Record<string, number> }[] })["QUERY PLAN"][0] ?? {
    Plan: {},
  };
  return (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0);
}

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
  let answer: Awaited<ReturnType<typeof call>> | undefined;
  const sent = await sentStatements(tenant.id, async () => {
    answer = await call("POST", "/v1/events:search", { query: { fields: [{ field: "count" }] } });
  });
  expect(answer?.status).toBe(200);
  const body = answer?.body;
  expect(body.results).toHaveLength(1);
  expect(body.results[0].count).toBe(String(occurrences));
  expect(body.results[0].matchedCount).toBe(String(occurrences));
  expect(body.results[0].occurrences).toHaveLength(1000);
  const pages = await Promise.all(sent.filter(({ text }) => text.includes("with matching as")).map(pagesRead));
  expect(pages).toHaveLength(1);
  // Each occurrence is looked up by its key. By the event's entries of another index it were 70 pages for each, and more with more of them.
  expect(pages[0]).toBeLessThan(20 * occurrences);
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
