import { expect } from "vitest";
import type { Sql } from "../../src/db/connect.ts";

/**
 * What is due at a destination that answers is sent, whatever other rules wait for: after a look only that is left which an
 * earlier, tried delivery of its destination and subject comes before.
 */
export async function expectNothingHeldUp(sql: Sql, tenantId: string, nowMs: number): Promise<void> {
  const held = await sql`
    select d.rule_name, d.destination_name, d.occasion from due_deliveries d
      left join destination_states s on s.tenant_id = d.tenant_id and s.destination_name = d.destination_name
    where d.tenant_id = ${tenantId} and d.due_ms <= ${nowMs} and coalesce(s.opened, 0) = 0 and not exists (
      select from due_deliveries e
      where e.tenant_id = d.tenant_id and e.destination_name = d.destination_name and e.subject = d.subject
        and (e.created_ms, e.id) < (d.created_ms, d.id) and e.tries > 0)`;
  expect(held).toEqual([]);
}
