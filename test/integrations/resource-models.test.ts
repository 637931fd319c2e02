import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { tool } from "./calls.ts";

const server = await testServer({}, { lockTimeoutMs: 100 });
const { sql } = server.database;

test("data whose resource cannot be stored now are not sent again; the resource goes with the next data", async () => {
  const tenant = await testTenant(sql);
  const call = tool(server, tenant.headers);
  const named = (key: string) => ({ key, value: { stringValue: "web-1" } });
  const of = (...keys: string[]) => ({ attributes: keys.map(named) });
  const logs = (resource: object) => ({
    resourceLogs: [{ resource, scopeLogs: [{ logRecords: [{ eventName: "e", body: { stringValue: "full" } }] }] }],
  });
  const metrics = (resource: object) => ({
    resourceMetrics: [
      { resource, scopeMetrics: [{ metrics: [{ name: "m", gauge: { dataPoints: [{ asDouble: 1 }] } }] }] },
    ],
  });
  const described = () =>
    sql`select from entities where tenant_id = ${tenant.id} and metadata ? 'os.type'`.then(({ count }) => count);
  // The entity is there, without a description.
  const bare = of("host.name");
  expect(await call("POST", "/v1/logs", logs(bare))).toMatchObject({ status: 200 });
  expect(await call("POST", "/v1/metrics", metrics(bare))).toMatchObject({ status: 200 });
  const whole = of("host.name", "os.type");
  await sql.begin(async (tx) => {
    await tx`select from entities where tenant_id = ${tenant.id} for no key update`;
    const sent = [call("POST", "/v1/logs", logs(whole)), call("POST", "/v1/metrics", metrics(whole))];
    for (const answer of await Promise.all(sent)) expect(answer).toMatchObject({ status: 200, body: {} });
  });
  expect(await described()).toBe(0);
  const { body } = await v1(server.url, tenant.headers)("POST", "/v1/events:search", { query: {} });
  expect(body.results).toMatchObject([{ name: "e" }]);
  expect(await call("POST", "/v1/metrics", metrics(whole))).toMatchObject({ status: 200 });
  expect(await described()).toBe(1);
});
