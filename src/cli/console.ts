import { parseArgs } from "node:util";
import { createLink } from "../auth/console-links.ts";
import { keptAddress } from "../config/server-address.ts";
import type { Config } from "../config/settings.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { calledUrl } from "../http/address.ts";
import { resourceText } from "../rpc/audit.ts";
import { auditedAction } from "../tenants/audit.ts";
import { onlyTenant } from "../tenants/only-tenant.ts";
import { commandLine, tenantNamed } from "./tenants.ts";

/** How the command of this file is called. */
export const consoleUsage = [
  ["console [--tenant <name>] [--key <prefix>]", "print a link to the console that logs a browser in, once"],
  ["", "and within 30 minutes: with the oldest manager key, or with the one named; of"],
  ["", "several tenants, name one"],
] as const;

/** What a command line about the console asks for: the work on a migrated database, which returns what to print. Undefined when it is none. */
export function consoleCommand(args: readonly string[], config: Config): ((db: Db) => Promise<string>) | undefined {
  if (args[0] !== "console") return undefined;
  try {
    const { values } = parseArgs({
      args: args.slice(1),
      options: { tenant: { type: "string" }, key: { type: "string" } },
    });
    return (db) => printLink(db, config, values.tenant, values.key);
  } catch {
    return undefined; // an option that it does not have
  }
}

async function printLink(
  db: Db,
  config: Config,
  tenantName: string | undefined,
  key: string | undefined,
): Promise<string> {
  const tenant = await (tenantName === undefined ? onlyTenant(db, "console") : tenantNamed(db, tenantName));
  const token = await transaction(db, async (tx) => {
    const made = await createLink(tx, tenant.id, key?.replace(/^bf_/, ""));
    await auditedAction(tx, tenant.id, commandLine(), "CreateConsoleLink", resourceText("apiKey", made.keyId));
    return made.token;
  });
  const url = config.publicUrl ?? keptAddress(config.dataDir) ?? calledUrl(config.host, config.port, !config.plaintext);
  return `${url}/console/#first=${token}\n`;
}
