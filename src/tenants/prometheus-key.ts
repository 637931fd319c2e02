import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { issueKey } from "../auth/api-keys.ts";
import { clientNamed } from "../auth/clients.ts";
import { createClient } from "../auth/create-tenant.ts";
import { parseKey } from "../auth/key.ts";
import { ownerOfKey } from "../auth/key-verifier.ts";
import type { Db, Sql } from "../db/connect.ts";
import { StartError } from "../db/start-error.ts";
import { transaction } from "../db/transaction.ts";
import { resourceText } from "../rpc/audit.ts";
import { auditedAction } from "./audit.ts";
import { writeSecret } from "./first-key.ts";
import { onlyTenant } from "./only-tenant.ts";

const keyName = "prometheus";
const actor = { id: "serve-prometheus", name: "serve --prometheus" };

/** A key that may only send data, and the file that keeps it. */
export interface PrometheusKey {
  file: string;
  secret: string;
}

/**
 * Returns the key that Prometheus sends with: the one kept in the data directory, or a new one if that was revoked. The tenant
 * may be left unnamed while there is one. The file is written before the key is committed, so that no crash leaves a key that
 * nobody knows. @throws StartError when it is not clear which tenant is meant
 */
export async function prometheusKey(sql: Sql, dataDir: string, tenantName: string | undefined): Promise<PrometheusKey> {
  return await transaction(sql, async (tx) => {
    const tenantId = await meantTenant(tx, tenantName);
    const files = ["prometheus.key", `prometheus-${tenantId}.key`].map((name) => join(dataDir, name));
    let free: string | undefined;
    for (const file of files) {
      const secret = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
      const prefix = parseKey(secret);
      const owner = prefix === undefined ? undefined : await ownerOfKey(tx, prefix);
      if (owner?.tenantId === tenantId) return { file, secret };
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
  if (name === undefined) return (await onlyTenant(tx, "--prometheus")).id;
  const [named] = await tx<{ id: string }[]>`select id from tenants where name = ${name}`;
  if (named === undefined) throw new StartError(`--tenant: there is no tenant ${JSON.stringify(name)}`);
  return named.id;
}

/** Returns the client `prometheus` that may only send; makes it where it is missing. */
async function clientOf(tx: Db, tenantId: string): Promise<string> {
  const known = await clientNamed(tx, tenantId, keyName, "DATA_INGEST");
  if (known !== undefined) return known;
  const made = await createClient(tx, tenantId, { name: keyName, type: "DATA_INGEST", role: null });
  await auditedAction(tx, tenantId, actor, "CreateApiClient", resourceText("apiClient", made.id));
  return made.id;
}
