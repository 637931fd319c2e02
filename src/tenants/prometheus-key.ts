import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { and, eq } from "drizzle-orm";
import { issueKey } from "../auth/api-keys.ts";
import { createClient } from "../auth/issue-key.ts";
import { parseKey } from "../auth/key.ts";
import { apiClients, apiKeyPrefixes, tenants } from "../auth/tables.ts";
import type { Db, Sql } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { StartError } from "../db/start-error.ts";
import { transaction } from "../db/transaction.ts";
import { resourceText } from "../rpc/audit.ts";
import { auditedAction } from "./audit.ts";
import { writeSecret } from "./first-key.ts";

const keyName = "prometheus";
const actor = { id: "serve-prometheus", name: "serve --prometheus" };

/** A key that may only send data, and the file that keeps it. */
export interface KeptKey {
  file: string;
  secret: string;
}

/**
 * Returns the key that Prometheus sends with: the one kept in the data directory, or a new one if that was revoked. The tenant
 * may be left unnamed while there is one. The file is written before the key is committed, so that no crash leaves a key that
 * nobody knows. @throws StartError when it is not clear which tenant is meant
 */
export async function prometheusKey(sql: Sql, dataDir: string, tenantName: string | undefined): Promise<KeptKey> {
  return await transaction(sql, async (tx) => {
    const tenantId = await meantTenant(tx, tenantName);
    const files = ["prometheus.key", `prometheus-${tenantId}.key`].map((name) => join(dataDir, name));
    let free: string | undefined;
    for (const file of files) {
      const secret = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
      const owner = await tenantOfKey(tx, secret);
      if (owner === tenantId) return { file, secret };
      if (owner === undefined) free ??= file;
    }
    const file = free ?? (files.at(-1) as string);
    const { key, secret } = await issueKey(
      tx,
      tenantId,
      await clientOf(tx, tenantId),
      { description: keyName, expiresMs: null },
      "expireTime",
    );
    await auditedAction(tx, tenantId, actor, "CreateApiKey", resourceText("apiKey", key.id));
    await writeSecret(file, `${secret}\n`);
    return { file, secret };
  });
}

async function meantTenant(tx: Db, name: string | undefined): Promise<string> {
  const named = name === undefined ? undefined : eq(tenants.name, name);
  const found = await orm(tx).select({ id: tenants.id }).from(tenants).where(named).limit(2);
  if (found.length === 1) return (found[0] as (typeof found)[number]).id;
  if (name !== undefined) throw new StartError(`--tenant: there is no tenant ${JSON.stringify(name)}`);
  throw new StartError(
    found.length === 0
      ? "--prometheus needs a tenant: make one with `tenants create <name>` first"
      : "--prometheus needs --tenant <name>, since there are several tenants",
  );
}

async function tenantOfKey(tx: Db, secret: string): Promise<string | undefined> {
  const prefix = parseKey(secret);
  if (prefix === undefined) return undefined;
  const [row] = await orm(tx)
    .select({ tenantId: apiKeyPrefixes.tenantId })
    .from(apiKeyPrefixes)
    .where(eq(apiKeyPrefixes.prefix, prefix));
  return row?.tenantId;
}

/** Returns the client `prometheus` that may only send; makes it where it is missing. */
async function clientOf(tx: Db, tenantId: string): Promise<string> {
  const [known] = await orm(tx)
    .select({ id: apiClients.id })
    .from(apiClients)
    .where(and(eq(apiClients.tenantId, tenantId), eq(apiClients.name, keyName), eq(apiClients.type, "DATA_INGEST")))
    .limit(1);
  if (known !== undefined) return known.id;
  const made = await createClient(tx, tenantId, { name: keyName, type: "DATA_INGEST", role: null });
  await auditedAction(tx, tenantId, actor, "CreateApiClient", resourceText("apiClient", made.id));
  return made.id;
}
