import { randomUUIDv7 } from "node:crypto";
import { databaseNowMs } from "../db/columns.ts";
import type { Db } from "../db/connect.ts";
import { makeHome } from "../db/home-row.ts";
import { orm } from "../db/orm.ts";
import { transaction } from "../db/transaction.ts";
import { alreadyExists } from "../errors.ts";
import { keyDigest, newApiKey } from "./key.ts";
import type { ClientType, Role } from "./principal.ts";
import { apiClients, apiKeyPrefixes, apiKeys, tenants } from "./tables.ts";

/** Makes a tenant. @throws code 6 when the name is taken. */
export async function createTenant(db: Db, name: string): Promise<{ id: string; name: string }> {
  const id = randomUUIDv7();
  const made = await orm(db)
    .insert(tenants)
    .values({ id, name, createdMs: databaseNowMs })
    .onConflictDoNothing({ target: tenants.name })
    .returning({ id: tenants.id });
  if (made.length === 0) throw alreadyExists("tenant", name);
  await makeHome(db, id);
  return { id, name };
}

/** Makes an API client. The caller has checked that a USER client has a role and no other one has. */
export async function createClient(
  db: Db,
  tenantId: string,
  client: { name: string; type: ClientType; role: Role | null },
): Promise<{ id: string; createdMs: bigint }> {
  const id = randomUUIDv7();
  const made = await orm(db)
    .insert(apiClients)
    .values({ tenantId, id, ...client, createdMs: databaseNowMs })
    .returning({ id: apiClients.id, createdMs: apiClients.createdMs });
  return made[0] as (typeof made)[number];
}

/** Makes a key for a client of the tenant. `text` is the whole key: show it once, it is not stored. */
export async function createKey(
  db: Db,
  tenantId: string,
  clientId: string,
  key: { description: string; expiresMs: bigint | null },
): Promise<{ id: string; prefix: string; text: string; createdMs: bigint }> {
  const id = randomUUIDv7();
  const { text, prefix } = newApiKey();
  return transaction(db, async (tx) => {
    const made = await orm(tx)
      .insert(apiKeys)
      .values({ tenantId, id, clientId, prefix, digest: keyDigest(text), createdMs: databaseNowMs, ...key })
      .returning({ id: apiKeys.id, prefix: apiKeys.prefix, createdMs: apiKeys.createdMs });
    await orm(tx).insert(apiKeyPrefixes).values({ prefix, tenantId, keyId: id });
    return { ...(made[0] as (typeof made)[number]), text };
  });
}
