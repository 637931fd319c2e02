import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const db = server.database.sql;
const path = "/v1/event-views";

async function place() {
  const tenant = await testTenant(db);
  return { tenant, call: v1(server.url, tenant.headers) };
}

test("a view is made, listed by name for everybody in the tenant, replaced and deleted", async () => {
  const { tenant, call } = await place();
  const made = await call("POST", path, { name: "night", query: "status=OPEN", display: "group=alertname" });
  expect(made.body.view).toEqual({
    name: "night",
    query: "status=OPEN",
    display: "group=alertname",
    createdBy: expect.any(String),
    createTime: expect.stringMatching(/^\d{13}$/),
    updateTime: made.body.view.createTime,
  });
  await call("POST", path, { name: "a", query: "" });
  const reader = v1(server.url, await keyHeaders(db, tenant.id, "USER", "read_only_user"));
  const names = async () => (await reader("GET", path)).body.views.map(({ name }: { name: string }) => name);
  expect(await names()).toEqual(["a", "night"]);
  expect(await reader("POST", path, { name: "mine" })).toMatchObject({ status: 403 });
  const replaced = await call("PUT", `${path}/night`, { query: "new" });
  expect(replaced.body.view).toMatchObject({
    name: "night",
    query: "new",
    display: "",
    createTime: made.body.view.createTime,
  });
  expect(await call("POST", path, { name: "night" })).toMatchObject({ status: 409, body: { code: 6 } });
  expect(await call("DELETE", `${path}/night`)).toEqual(expect.objectContaining({ status: 200, body: {} }));
  expect(await names()).toEqual(["a"]);
  for (const method of ["PUT", "DELETE"])
    expect(await call(method, `${path}/night`, method === "PUT" ? {} : undefined)).toMatchObject({ status: 404 });
  const { entries } = (await call("GET", "/v1/audit-log?pageSize=10")).body;
  expect(JSON.stringify(entries)).toContain("ReplaceEventView");
});

test("a tenant has at most 200, and their texts are bounded", async () => {
  const { tenant, call } = await place();
  await db`
    insert into event_views (tenant_id, name, query, display, created_by, created_ms, updated_ms)
    select ${tenant.id}, n, '', '', '', 0, 0 from generate_series(1, 199) as n`;
  expect(await call("POST", path, { name: "last" })).toMatchObject({ status: 200 });
  const message = "the tenant has 200 views already; delete one first";
  expect(await call("POST", path, { name: "more" })).toMatchObject({ status: 400, body: { code: 9, message } });
  for (const body of [{ name: "" }, { name: "x", query: "q".repeat(16_385) }, { name: "x", display: "d".repeat(4097) }])
    expect(await call("POST", path, body)).toMatchObject({ status: 400, body: { code: 3 } });
});
