import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { textArray } from "../../src/db/batch.ts";
import { loopTurns } from "../support/loop-turns.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer({});
const { sql } = server.database;
vi.setConfig({ testTimeout: 60_000 });

/** Stores updaters, whose names are their places, without starting them. */
async function store(tenantId: string, clauses: readonly object[]) {
  const inputs = clauses.map((clause) => JSON.stringify({ clause }));
  await sql`
    insert into property_updaters
      (tenant_id, id, name, description, entity_input, properties, enabled, sequence, tags, created_ms, updated_ms)
    select ${tenantId}::uuid, place::text, place::text, '', input, jsonb_build_object('p' || place % 10, place),
      true, place, '[]', 0, 0
    from unnest(${textArray(inputs)}::text[]::jsonb[]) with ordinality as sent (input, place)`;
  await sql`
    insert into property_updater_sets (tenant_id, version, enabled) values (${tenantId}, 1, true)
    on conflict (tenant_id) do update set version = property_updater_sets.version + 1, enabled = true`;
}

/** Puts models, and waits until the updaters have run over them; returns the longest turn of the loop, ms. */
async function longestTurn(tenant: Awaited<ReturnType<typeof testTenant>>, count: number, note: string) {
  const models = Array.from({ length: count }, (_, i) => ({
    timestamp: `${Date.now()}`,
    dimensions: { source: `s${i}` },
    metadataFields: { note },
  }));
  const answer = await v1(server.url, tenant.headers)("POST", "/v1/data-receiver/models", { models });
  expect(answer.body).toMatchObject({ succeeded: count });
  const turns = loopTurns();
  while ((await sql`select from jobs where tenant_id = ${tenant.id} and kind like 'properties.%'`).count > 0) {
    await sleep(20);
  }
  turns.stop();
  return turns.longest().ms;
}

const contains = (value: string) => ({ filter: { field: "entity.note", operation: "OP_CONTAINS", value } });
const setBy = (tenantId: string) =>
  sql`select distinct custom_properties as set from entities where tenant_id = ${tenantId}`;

test("thousands of updaters over a batch of entities are compiled and applied in slices", async () => {
  const tenant = await testTenant(sql);
  const updaters = 5000;
  const three = (i: number) => ({ or: { clauses: [contains(`${i} a`), contains(`${i} b`), contains(`${i} c`)] } });
  await store(tenant.id, [...Array.from({ length: updaters - 1 }, (_, i) => three(i)), contains("text")]);
  expect(await longestTurn(tenant, 400, "some text ".repeat(100))).toBeLessThan(100);
  expect(await setBy(tenant.id)).toEqual([{ set: { p0: updaters } }]);
});

test("so is one with hundreds of conditions on a long text", async () => {
  const tenant = await testTenant(sql);
  const clauses = Array.from({ length: 900 }, (_, i) => contains(`ÄÖ${i}`));
  await store(tenant.id, [{ or: { clauses: [...clauses, contains("aÄ")] } }]);
  expect(await longestTurn(tenant, 3, "Äa".repeat(15_000))).toBeLessThan(100);
  expect(await setBy(tenant.id)).toEqual([{ set: { p1: 1 } }]);
});
