import { sql } from "drizzle-orm";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { tenantState } from "./tables.ts";

/**
 * Says that triggers, destinations or rules of the tenant are other ones after the caller's transaction: events that are
 * stored after its commit are held against the new ones, on every server. The last but for the commit, because all others
 * that store events of the tenant wait for it.
 */
export async function raiseRulesVersion(tx: Db, tenantId: string): Promise<void> {
  await orm(tx)
    .insert(tenantState)
    .values({ tenantId, rulesVersion: 1n })
    .onConflictDoUpdate({
      target: tenantState.tenantId,
      set: { rulesVersion: sql`${tenantState.rulesVersion} + 1` },
    });
}
