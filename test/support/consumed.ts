import { expect } from "vitest";
import type { Db } from "../../src/db/connect.ts";

/** Waits until rules have looked at all that is stored of a tenant. */
export async function consumed(db: Db, tenantId: string): Promise<void> {
  const behind = async () =>
    (
      await db`
        select from feed f join feed_cursors c on c.tenant_id = f.tenant_id and f.position > c.position
        where f.tenant_id = ${tenantId} limit 1`
    ).count;
  await expect.poll(behind, { interval: 10 }).toBe(0);
}
