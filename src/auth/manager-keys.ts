import { and, count, eq, gt, isNull, or } from "drizzle-orm";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { databaseNowMs } from "../db/columns.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { failedPrecondition } from "../errors.ts";
import { apiClients, apiKeys } from "./tables.ts";

/**
 * Runs what takes keys away, within the caller's transaction, and sees to it that the last manager key of the tenant
 * that still holds is not among them. One such change of a tenant runs at a time. @throws code 9
 */
export async function keepManagerKey(tx: Db, tenantId: string, change: () => Promise<void>): Promise<void> {
  // A change that would take the other one waits here. Making keys locks one client, so the two never wait in a circle.
  await orm(tx)
    .select({ id: apiClients.id })
    .from(apiClients)
    .where(and(eq(apiClients.tenantId, tenantId), eq(apiClients.role, "manager")))
    .orderBy(apiClients.id)
    .for("no key update");
  const before = await managerKeys(tx, tenantId);
  await change();
  if (before > 0 && (await managerKeys(tx, tenantId)) === 0) {
    throw failedPrecondition(
      "this is the last manager key of the tenant; create another one first",
      ErrorReason.LAST_MANAGER_KEY,
    );
  }
}

/** Manager keys that have not expired. */
async function managerKeys(tx: Db, tenantId: string): Promise<number> {
  const [row] = await orm(tx)
    .select({ keys: count() })
    .from(apiKeys)
    .innerJoin(apiClients, and(eq(apiClients.tenantId, apiKeys.tenantId), eq(apiClients.id, apiKeys.clientId)))
    .where(
      and(
        eq(apiKeys.tenantId, tenantId),
        eq(apiClients.role, "manager"),
        or(isNull(apiKeys.expiresMs), gt(apiKeys.expiresMs, databaseNowMs)),
      ),
    );
  return row?.keys ?? 0;
}
