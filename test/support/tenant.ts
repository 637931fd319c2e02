import { randomUUID } from "node:crypto";
import { createClient, createKey, createTenant } from "../../src/auth/create-tenant.ts";
import type { ClientType, Role } from "../../src/auth/principal.ts";
import type { Db } from "../../src/db/connect.ts";
import { makeHome } from "../../src/db/home-row.ts";

/** A tenant of its own for a test, with a manager's key. */
export interface TestTenant {
  id: string;
  name: string;
  /** Headers of a call by the manager. */
  headers: Record<string, string>;
}

let made = 0;

export async function testTenant(db: Db): Promise<TestTenant> {
  made += 1;
  const tenant = await createTenant(db, `tenant ${process.pid} ${made} ${Date.now()}`);
  return { ...tenant, headers: await keyHeaders(db, tenant.id, "USER", "manager") };
}

/** The id of a tenant for whom rows can be stored, and nothing else. */
export async function bareTenant(db: Db): Promise<string> {
  const id = randomUUID();
  await makeHome(db, id);
  return id;
}

/** Headers of a call by a client of this type and role. */
export async function keyHeaders(db: Db, tenantId: string, type: ClientType, role: Role | null) {
  const client = await createClient(db, tenantId, { name: `${type} ${role ?? ""}`.trim(), type, role });
  const key = await createKey(db, tenantId, client.id, { description: "test", expiresMs: null });
  return { "service-api-key": key.text };
}
