import { createClient, createKey, createTenant } from "../auth/create-tenant.ts";
import type { Db } from "../db/connect.ts";
import { resourceText } from "../rpc/audit.ts";
import { type Actor, auditedAction } from "./audit.ts";

/** Makes a tenant with a manager client and its first key, in the caller's transaction. @throws code 6 when the name is taken. */
export async function createTenantWithKey(
  tx: Db,
  name: string,
  actor: Actor,
): Promise<{ id: string; name: string; secret: string }> {
  const tenant = await createTenant(tx, name);
  const client = await createClient(tx, tenant.id, { name: "admin", type: "USER", role: "manager" });
  const { text } = await createKey(tx, tenant.id, client.id, { description: "first key", expiresMs: null });
  await auditedAction(tx, tenant.id, actor, "CreateTenant", resourceText("tenant", name));
  return { ...tenant, secret: text };
}

/** The name of a tenant. */
export async function tenantNameOf(db: Db, id: string): Promise<string> {
  const [tenant] = await db<{ name: string }[]>`select name from tenants where id = ${id}`;
  return tenant?.name ?? "";
}

/** The ids of all tenants. */
export async function tenantIds(db: Db): Promise<string[]> {
  const rows = await db<{ id: string }[]>`select id from tenants order by id`;
  return rows.map(({ id }) => id);
}

/** Keeps that a session of the console was made, in its transaction. May be repeated. */
export async function noteFirstSession(tx: Db, tenantId: string): Promise<void> {
  await tx`
    update tenant_state set first_session_ms = (extract(epoch from statement_timestamp()) * 1000)::bigint
    where tenant_id = ${tenantId} and first_session_ms is null`;
}

/** The tenant of this name, if no session of the console was ever made there. */
export async function withoutSession(db: Db, tenantName: string): Promise<string | undefined> {
  const [tenant] = await db<{ id: string }[]>`select id from tenants where name = ${tenantName}`;
  if (tenant === undefined) return undefined;
  const [made] = await db`
    select 1 from tenant_state where tenant_id = ${tenant.id} and first_session_ms is not null`;
  return made === undefined ? tenant.id : undefined;
}
