import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import { credentialService } from "../../src/credentials/service.ts";
import type { Reads } from "./reads.ts";

const credentials = 500;

/** Pages of 1 and of 100 of 500 credentials, with their number; the API has no read of a single one. Nothing is decrypted. */
export const credentialReads: Reads = async (sql, tenantId) => {
  await sql`
    insert into credentials (tenant_id, id, name, type, description, tags, allowed_api_clients, secrets)
    select ${tenantId}::uuid, 'credential-' || c, 'credential ' || lpad(c::text, 4, '0'), 'usernamePassword', 'of a device',
      '["north", "lab"]', '[]', jsonb_build_object('username', repeat('A', 60), 'password', repeat('A', 80))
    from generate_series(0, ${credentials - 1}::int) as c`;
  await sql`
    insert into credential_uses (tenant_id, credential_id, kind, used_by)
    select ${tenantId}::uuid, 'credential-' || c, 'destination', 'destination ' || c
    from generate_series(0, ${credentials - 1}::int) as c`;
  await sql`analyze credentials, credential_uses`;

  const config = readConfig({ DATABASE_URL: "postgres://localhost" });
  const page = (size: number) => async () => {
    const [rows] = await Promise.all([
      sql`
        select c.id, c.name, c.type, c.description, c.tags, c.allowed_api_clients,
          array(
            select u.used_by from credential_uses u
            where u.tenant_id = c.tenant_id and u.credential_id = c.id and u.kind = 'collection' order by u.used_by
          ) as collections,
          array(
            select u.used_by from credential_uses u
            where u.tenant_id = c.tenant_id and u.credential_id = c.id and u.kind = 'destination' order by u.used_by
          ) as destinations,
          array[(c.name)::text, (c.id)::text] as keys
        from credentials c where c.tenant_id = ${tenantId} order by c.name, c.id limit ${size + 1}`,
      sql`select count(*) from credentials where tenant_id = ${tenantId}`,
    ]);
    return rows;
  };
  return {
    services: [
      {
        service: CredentialService,
        implementation: credentialService(sql, config, keyring(config), async () => []),
      },
    ],
    cases: [1, 100].map((size) => ({
      name: size === 1 ? "one credential" : `${size} credentials`,
      method: CredentialService.method.listCredentials,
      request: { pageSize: size },
      rows: size + 1,
      statement: page(size),
    })),
  };
};
