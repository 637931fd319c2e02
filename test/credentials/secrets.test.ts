import { randomBytes } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import { openSealed, openSecrets, sealSecrets } from "../../src/credentials/secrets.ts";
import { transaction } from "../../src/db/transaction.ts";
import { transport } from "../support/clients.ts";
import { onOnePostgres } from "../support/one-postgres.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";

const text = () => randomBytes(32).toString("base64");
const [first, second] = [`first:${text()}`, `second:${text()}`];
const ring = (keys: string) => keyring(readConfig({ DATABASE_URL: "postgres://nowhere/", BELFRY_MASTER_KEYS: keys }));

const server = await testServer({ BELFRY_MASTER_KEYS: first });
const { sql } = server.database;
const own = ring(first);
let tenant: TestTenant;

beforeEach(async () => {
  tenant = await testTenant(sql);
});

const clientOf = (of: TestTenant) => createClient(CredentialService, transport(server.target, "grpc", of.headers));

async function create(of: TestTenant, secrets = { username: "anna", password: "geheim" }): Promise<string> {
  const made = await clientOf(of).createCredential({ info: { name: "a", type: "usernamePassword" }, secrets });
  return made.info?.id ?? "";
}

const open = (id: string, of = tenant, keys = own) => openSecrets(sql, of.id, id, keys);
const refusal = (message: RegExp) => ({ code: 9, message: expect.stringMatching(message) });
const changed = /secret "password" of the credential .* is not as it was stored/;

describe("the secrets of a credential", () => {
  test("are those that were stored, with their type", async () => {
    const id = await create(tenant);
    expect(await open(id)).toEqual({ type: "usernamePassword", secrets: { username: "anna", password: "geheim" } });
  });

  test("are those of the last replacement that had some", async () => {
    const id = await create(tenant);
    await clientOf(tenant).replaceCredential({ id, info: { name: "b", type: "usernamePassword" } });
    expect((await open(id)).secrets.password).toBe("geheim");
    const secrets = { clientID: "i", clientSecret: "s" };
    await clientOf(tenant).replaceCredential({ id, info: { name: "b", type: "officeSuite" }, secrets });
    expect(await open(id)).toEqual({ type: "officeSuite", secrets: { clientId: "i", clientSecret: "s" } });
  });

  test("are none when none were stored, and not found for another tenant or an unknown id", async () => {
    const made = await clientOf(tenant).createCredential({ info: { name: "a", type: "teamChat" } });
    expect(await open(made.info?.id ?? "")).toEqual({ type: "teamChat", secrets: {} });
    const id = await create(tenant);
    await expect(open(id, await testTenant(sql))).rejects.toMatchObject({ code: 5 });
    await expect(open("none")).rejects.toMatchObject({ code: 5 });
  });

  test("need one data key a tenant, whoever stores the first one", async () => {
    const ids = await Promise.all(
      Array.from({ length: 30 }, (_, i) => create(tenant, { username: "u", password: `p${i}` })),
    );
    expect(await sql`select 1 from data_keys where tenant_id = ${tenant.id}`).toHaveLength(1);
    const opened = await Promise.all(ids.map((id) => open(id)));
    expect(opened.map(({ secrets }) => secrets.password)).toEqual(ids.map((_, i) => `p${i}`));
  });

  test("of other owners are sealed and opened in the same way", async () => {
    const owner = { kind: "destination", id: "d" };
    const sealed = await transaction(sql, (tx) => sealSecrets(tx, tenant.id, owner, { hook: "h" }, own));
    expect(await openSealed(sql, tenant.id, owner, sealed, own)).toEqual({ hook: "h" });
    const other = { kind: "destination", id: "e" };
    await expect(openSealed(sql, tenant.id, other, sealed, own)).rejects.toMatchObject(refusal(/"hook"/));
  });
});

describe("what was changed in the database is a clear error, never a wrong secret", () => {
  const replaceSecret = (id: string, value: string, of = tenant) => sql`
    update credentials set secrets = jsonb_set(secrets, '{password}', to_jsonb(${value}::text))
    where tenant_id = ${of.id} and id = ${id}`;
  const sealedOf = async (id: string, name = "password", of = tenant): Promise<string> => {
    const [row] =
      await sql`select secrets ->> ${name} as sealed from credentials where tenant_id = ${of.id} and id = ${id}`;
    return row?.sealed;
  };

  test("a changed ciphertext", async () => {
    const id = await create(tenant);
    const bytes = Buffer.from(await sealedOf(id), "base64");
    for (const at of [0, 1, 13, bytes.length - 1]) {
      const broken = Buffer.from(bytes);
      broken[at] = (broken[at] as number) ^ 1;
      await replaceSecret(id, broken.toString("base64"));
      await expect(open(id)).rejects.toMatchObject(refusal(changed));
    }
    for (const value of ["", "geheim", "****"]) {
      await replaceSecret(id, value);
      await expect(open(id)).rejects.toMatchObject(refusal(changed));
    }
  });

  test("the secret of another credential, or another secret of the same", async () => {
    const [id, from] = [await create(tenant), await create(tenant, { username: "eve", password: "known" })];
    await replaceSecret(id, await sealedOf(from));
    await expect(open(id)).rejects.toMatchObject(refusal(changed));
    await replaceSecret(id, await sealedOf(id, "username"));
    await expect(open(id)).rejects.toMatchObject(refusal(changed));
  });

  onOnePostgres("rows that change their tenant")(
    "a row moved to another tenant, also together with that tenant's data key",
    async () => {
      const id = await create(tenant);
      const other = await testTenant(sql);
      await create(other);
      await sql`update credentials set tenant_id = ${other.id} where tenant_id = ${tenant.id} and id = ${id}`;
      await expect(open(id, other)).rejects.toMatchObject(refusal(/is not as it was stored/));
      await sql`delete from data_keys where tenant_id = ${other.id}`;
      await sql`update data_keys set tenant_id = ${other.id} where tenant_id = ${tenant.id}`;
      await expect(open(id, other)).rejects.toMatchObject(refusal(/data key of the tenant does not open/));
    },
  );

  test("a data key that was changed or is gone: also nothing new is stored under it", async () => {
    const id = await create(tenant);
    await sql`update data_keys set wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1) where tenant_id = ${tenant.id}`;
    await expect(open(id)).rejects.toMatchObject(refusal(/data key of the tenant does not open/));
    await expect(create(tenant)).rejects.toMatchObject({ code: 9 });
    await sql`delete from data_keys where tenant_id = ${tenant.id}`;
    await expect(open(id)).rejects.toMatchObject(refusal(/data key .* is gone/));
    // Storing the secrets again mends it.
    const secrets = { username: "anna", password: "new" };
    await clientOf(tenant).replaceCredential({ id, info: { name: "a", type: "usernamePassword" }, secrets });
    expect((await open(id)).secrets).toEqual(secrets);
  });

  test("a master key that is missing here, or another one under the same id", async () => {
    const id = await create(tenant);
    await expect(open(id, tenant, ring(second))).rejects.toMatchObject(refusal(/master key first, which this server/));
    await expect(open(id, tenant, ring(""))).rejects.toMatchObject(refusal(/master key first, which this server/));
    await expect(open(id, tenant, ring(`first:${text()}`))).rejects.toMatchObject(refusal(/does not open/));
  });
});
