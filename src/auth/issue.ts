import { randomUUIDv7 } from "node:crypto";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { alreadyExists } from "../errors.ts";
import { keyDigest, newKey } from "./key.ts";
import type { ClientType, Role } from "./principal.ts";

/** Makes a tenant. @throws code 6 when the name is taken. */
export async function createTenant(db: Db, name: string): Promise<{ id: string; name: string }> {
  const id = randomUUIDv7();
  const made = await db`
    insert into tenants (id, name, created_ms)
    values (${id}, ${name}, (extract(epoch from clock_timestamp()) * 1000)::bigint)
    on conflict (name) do nothing`;
  if (made.count === 0) throw alreadyExists("tenant", name);
  return { id, name };
}

/** Makes an API client. The caller has checked that a USER client has a role and no other one has. */
export async function createClient(
  db: Db,
  tenantId: string,
  client: { name: string; type: ClientType; role: Role | null },
): Promise<{ id: string; createdMs: bigint }> {
  const id = randomUUIDv7();
  const [row] = await db<[{ createdMs: bigint }]>`
    insert into api_clients (tenant_id, id, name, type, role, created_ms)
    values (${tenantId}, ${id}, ${client.name}, ${client.type}, ${client.role},
            (extract(epoch from clock_timestamp()) * 1000)::bigint)
    returning created_ms as "createdMs"`;
  return { id, createdMs: row.createdMs };
}

/** Makes a key for a client of the tenant. `text` is the whole key: show it once, it is not stored. */
export async function createKey(
  db: Db,
  tenantId: string,
  clientId: string,
  key: { description: string; expiresMs: bigint | null },
): Promise<{ id: string; prefix: string; text: string; createdMs: bigint }> {
  const id = randomUUIDv7();
  const { text, prefix } = newKey();
  return transaction(db, async (tx) => {
    const [row] = await tx<[{ createdMs: bigint }]>`
      insert into api_keys (tenant_id, id, client_id, prefix, digest, description, created_ms, expires_ms)
      values (${tenantId}, ${id}, ${clientId}, ${prefix}, ${keyDigest(text)}, ${key.description},
              (extract(epoch from clock_timestamp()) * 1000)::bigint, ${key.expiresMs})
      returning created_ms as "createdMs"`;
    await tx`insert into api_key_prefixes (prefix, tenant_id, key_id) values (${prefix}, ${tenantId}, ${id})`;
    return { id, prefix, text, createdMs: row.createdMs };
  });
}
