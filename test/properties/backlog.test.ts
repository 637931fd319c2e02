import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
vi.setConfig({ testTimeout: 60_000 });

async function world() {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  const clause = { filter: { field: "entity.dimensions.source", operation: "OP_EXISTS" } };
  const create = (name: string) =>
    call("POST", "/v1/modelcontext/custompropertyupdaters:create", {
      updaters: [{ name, enabled: true, entity_input: { clause }, properties: { [name]: true } }],
    });
  /** Jobs that will not be due while the test runs, as many as may wait. */
  const crowd = (kind: string, count: number) => sql`
    insert into jobs (tenant_id, kind, id, payload, size, due_ms, created_ms, fence, lease_until_ms, failures)
    select ${tenant.id}::uuid, ${kind}, 'later ' || i, '{"ids":""}', 1, ${Date.now() + 3_600_000}, 0, 0, 0, 0
    from generate_series(1, ${count}::int4) i`;
  const open = () => sql<{ kind: string; id: string }[]>`
    select kind, id from jobs
    where tenant_id = ${tenant.id} and kind like 'properties.%' and not id like 'later %' order by kind, id`;
  async function settled() {
    while ((await open()).length > 0) await sleep(20);
  }
  const without = async (name: string) =>
    (await sql`select from entities where tenant_id = ${tenant.id} and not custom_properties ? ${name}`).count;
  return { tenant, call, create, crowd, open, settled, without };
}

test("an updater begins to look when what others have matched is done", async () => {
  const { call, create, crowd, open, settled, without, tenant } = await world();
  const models = [{ timestamp: `${Date.now()}`, dimensions: { source: "a" } }];
  await call("POST", "/v1/data-receiver/models", { models });
  await settled();
  await crowd("properties.matched", 10_000);
  await create("one");
  const createdMs = Date.now();
  const postponed = () => sql`
    select from jobs where tenant_id = ${tenant.id} and kind = 'properties.started' and due_ms > ${createdMs}::int8`;
  await expect.poll(async () => (await postponed()).count).toBe(1);
  expect((await open()).map(({ kind }) => kind)).toEqual(["properties.started"]);
  expect(await without("one")).toBe(1);
  await sql`delete from jobs where tenant_id = ${tenant.id} and id = 'later 1'`;
  await settled();
  expect(await without("one")).toBe(0);
});

test("a job of 0.2.x over a part of the entities is done for all of them", async () => {
  const { call, create, settled, without, tenant } = await world();
  const models = Array.from({ length: 800 }, (_, i) => ({
    timestamp: `${Date.now()}`,
    dimensions: { source: `s${i}` },
  }));
  await call("POST", "/v1/data-receiver/models", { models });
  // All in one part, which no tenant of a few hundred has.
  await sql`update entities set id = '\\x07'::bytea || substr(id, 2) where tenant_id = ${tenant.id}`;
  await create("one");
  await settled();
  await sql`update entities set custom_properties = '{}' where tenant_id = ${tenant.id}`;
  expect(await without("one")).toBe(800);
  await sql`
    insert into jobs (tenant_id, kind, id, payload, size, due_ms, created_ms, fence, lease_until_ms, failures)
    values (${tenant.id}, 'properties.changed', 'part 7', '{"part":7}', 300, 0, 0, 0, 0, 0)`;
  await sql`insert into due_work values (${tenant.id}, 'properties.changed', 0) on conflict do nothing`;
  await settled();
  expect(await without("one")).toBe(0);
});
