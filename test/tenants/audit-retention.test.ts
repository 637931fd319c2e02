import { expect, test } from "vitest";
import { dropAuditRows } from "../../src/tenants/audit-queue.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";

const { sql } = await testDatabase();

test("rows of a tenant from before a time go, portion by portion, the oldest first, and no others", async () => {
  const [tenant, other] = [(await testTenant(sql)).id, (await testTenant(sql)).id];
  for (const id of [tenant, other]) {
    await sql`
      insert into audit_entries (tenant_id, id, time_ms, client_id, client_name, rpc, method, resource, outcome, request_id)
      select ${id}::uuid, n::text, n, '', '', '', '', '', 'OK', '' from generate_series(0, 1999) as n`;
  }
  const left = async (id: string) =>
    (
      await sql<[{ n: number; first: number }]>`
        select count(*)::int4 as n, min(time_ms)::int4 as first from audit_entries where tenant_id = ${id}`
    )[0];
  expect(await dropAuditRows(sql, tenant, 1500)).toBe(1000);
  expect(await left(tenant)).toEqual({ n: 1000, first: 1000 });
  expect(await dropAuditRows(sql, tenant, 1500)).toBe(500);
  expect(await dropAuditRows(sql, tenant, 1500)).toBe(0);
  expect(await left(tenant)).toEqual({ n: 500, first: 1500 });
  expect(await left(other)).toEqual({ n: 2000, first: 0 });
});
