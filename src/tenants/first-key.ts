import { existsSync, mkdirSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
import { createLink } from "../auth/console-links.ts";
import type { Db, Sql } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { resourceText } from "../rpc/audit.ts";
import { auditedAction } from "./audit.ts";
import { createTenantWithKey, withoutSession } from "./tenant.ts";

const firstTenant = "default";
const firstStart = { id: "first-start", name: "first start" };

/** The file that holds the first manager key, and whether this start has made it. */
export interface FirstKey {
  file: string;
  made: boolean;
}

/**
 * The file with the first manager key. On a database without tenants it is made, with the tenant `default`: written
 * before the key is committed, so that no crash leaves a tenant without a known key.
 */
export async function firstKey(sql: Sql, dataDir: string): Promise<FirstKey | undefined> {
  const file = join(dataDir, "admin.key");
  const made = await transaction(sql, async (tx) => {
    if (await hasTenant(tx)) return false;
    const { secret } = await createTenantWithKey(tx, firstTenant, firstStart);
    await writeSecret(file, `${secret}\n`);
    return true;
  });
  return made || existsSync(file) ? { file, made } : undefined;
}

/** Whether there is a tenant; without one no key is good. */
export async function hasTenant(sql: Db): Promise<boolean> {
  return (await sql`select 1 from tenants limit 1`).length > 0;
}

/**
 * The token of a link that logs a browser in, with the oldest manager key of the first tenant; undefined once a session was made
 * there. @throws code 9 without such a key
 */
export async function firstLink(sql: Sql): Promise<string | undefined> {
  return await transaction(sql, async (tx) => {
    const tenantId = await withoutSession(tx, firstTenant);
    if (tenantId === undefined) return undefined;
    const { token, keyId } = await createLink(tx, tenantId);
    await auditedAction(tx, tenantId, firstStart, "CreateConsoleLink", resourceText("apiKey", keyId));
    return token;
  });
}

/** Writes a file that only its owner can read, whole or not at all. */
export async function writeSecret(path: string, text: string): Promise<void> {
  mkdirSync(join(path, ".."), { recursive: true });
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}
