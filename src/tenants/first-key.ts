import { existsSync, mkdirSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Sql } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { createTenantWithKey } from "./tenant.ts";

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
    const tenants = await tx`select 1 from tenants limit 1`;
    if (tenants.length > 0) return false;
    const { secret } = await createTenantWithKey(tx, "default", { id: "first-start", name: "first start" });
    await writeSecret(file, `${secret}\n`);
    return true;
  });
  return made || existsSync(file) ? { file, made } : undefined;
}

async function writeSecret(path: string, text: string): Promise<void> {
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
