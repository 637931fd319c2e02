import { describe, expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
const path = "/v1/notification/triggers:preview";

const clause = (field: string, stringVal: string) => ({ equals: { field, value: { stringVal } } });
const typeOf = (of: object) => ({ event: { query: { clause: of } } });

async function tenantWith(events: object[]) {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  const sent = events.map((event, i) => ({
    name: `event ${i}`,
    dimensions: { source: "web-1" },
    severity: "SEVERITY_ERROR",
    status: "STATUS_OPEN",
    timestamp: String(Date.now() - 1000 * i),
    ...event,
  }));
  if (events.length > 0) {
    const { body } = await call("POST", "/v1/data-receiver/events", { events: sent });
    expect(body).toMatchObject({ succeeded: events.length });
  }
  return { tenant, call, preview: async (body: object) => await call("POST", path, body) };
}

const namesOf = ({ body }: { body: { events: { name: string }[] } }) => body.events.map(({ name }) => name);

describe("a trigger that is not stored", () => {
  test("shows the occurrences of the last day that it matches, the latest first, closed ones as they were when they were open", async () => {
    const { preview, call } = await tenantWith([
      { name: "a" },
      { name: "b", severity: "SEVERITY_INFO" },
      { name: "c" },
      { name: "old", timestamp: String(Date.now() - 25 * 3_600_000) },
    ]);
    await call("POST", "/v1/data-receiver/events", {
      events: [
        {
          name: "c",
          dimensions: { source: "web-1" },
          severity: "SEVERITY_ERROR",
          status: "STATUS_CLOSED",
          timestamp: String(Date.now() + 1000),
        },
      ],
    });
    const type = typeOf({ greaterAndEquals: { field: "severity", value: { numberVal: 4 } } });
    const answer = await preview({ type });
    expect(answer).toMatchObject({ status: 200, body: { count: "2", partial: false } });
    expect(namesOf(answer)).toEqual(["c", "a"]);
    const [closed] = answer.body.events;
    expect(closed).toMatchObject({
      entityName: "source=web-1",
      count: "1",
      occurrences: [{ status: "STATUS_CLOSED" }],
    });
    const status = { equals: { field: "status", value: { numberVal: 3 } } };
    expect(namesOf(await preview({ type: typeOf(status) }))).toEqual(["c"]);
  });

  test("looks at what the range holds, and at the entity and the count where its clause does", async () => {
    const { preview } = await tenantWith([
      { name: "a" },
      { name: "b", timestamp: String(Date.now() - 3_600_000), dimensions: { source: "web-2" } },
    ]);
    const all = typeOf({ greaterAndEquals: { field: "severity", value: { numberVal: 0 } } });
    const start = String(Date.now() - 7_200_000);
    expect(namesOf(await preview({ type: all, timeRange: { start } }))).toEqual(["a", "b"]);
    expect(namesOf(await preview({ type: all, timeRange: { start, end: String(Date.now() - 60_000) } }))).toEqual([
      "b",
    ]);
    expect(namesOf(await preview({ type: typeOf(clause("entity.name", "source=web-2")) }))).toEqual(["b"]);
    const counted = typeOf({ lessAndEquals: { field: "count", value: { numberVal: 0 } } });
    expect((await preview({ type: counted })).body).toEqual({ count: "0", events: [], partial: false });
  });

  test("is counted whole, and shown by its hundred latest", async () => {
    const { preview } = await tenantWith(Array.from({ length: 620 }, () => ({})));
    const answer = await preview({ type: typeOf(clause("entity.name", "source=web-1")) });
    expect(answer.body).toMatchObject({ count: "620", partial: false });
    expect(namesOf(answer)).toEqual(Array.from({ length: 100 }, (_, i) => `event ${i}`));
  });

  test("is looked at up to 50,000 occurrences", { timeout: 120_000 }, async () => {
    const { preview, tenant } = await tenantWith([{ name: "a" }]);
    await sql`
      insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
        start_ms, last_seen_ms, end_ms, instance_count)
      select o.tenant_id, o.event_id, n, o.severity, o.status, o.acknowledged, o.type, o.summary, o.body, o.metadata,
        o.start_ms - 600000, o.last_seen_ms - 600000, o.last_seen_ms - 600000, o.instance_count
      from occurrences o, generate_series(o.number + 1, o.number + 50000) n where o.tenant_id = ${tenant.id}`;
    const answer = await preview({ type: typeOf(clause("name", "a")) });
    expect(answer.body).toMatchObject({ count: "50000", partial: true });
  });
});

test("what is wrong is named", async () => {
  const { preview } = await tenantWith([]);
  expect(await preview({})).toMatchObject({
    status: 400,
    body: { code: 3, message: expect.stringMatching(/^type: /) },
  });
  expect(await preview({ type: typeOf(clause("", "a")) })).toMatchObject({ status: 400, body: { code: 3 } });
  const type = typeOf(clause("name", "a"));
  expect(await preview({ type, timeRange: { start: "2", end: "1" } })).toMatchObject({ status: 400 });
  expect((await preview({ type, timeRange: { end: "1700000000" } })).body.message).toMatch(
    /^timeRange\.end: lies before 1973/,
  );
  expect(await preview({ type: { metricThreshold: { metricName: "load", max: 1 } } })).toMatchObject({
    status: 501,
    body: { code: 12, message: "triggers of the source event alone have a preview" },
  });
});
