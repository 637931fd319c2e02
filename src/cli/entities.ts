import { parseArgs } from "node:util";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { reidentifyEntities } from "../entities/earlier-identity.ts";
import { resourceText } from "../rpc/audit.ts";
import { auditedAction } from "../tenants/audit.ts";
import { commandLine, tenantNamed } from "./tenants.ts";

/** How the command of this file is called. */
export const entityUsage = [
  ["entities reidentify --tenant <name>", "give services of OpenTelemetry that shared an entity one each; what is"],
  ["", "stored stays where it is"],
] as const;

/** What a command line about entities asks for: the work on a migrated database, which answers what to print. Undefined when it is none. */
export function entityCommand(args: readonly string[]): ((db: Db) => Promise<string>) | undefined {
  if (args[0] !== "entities" || args[1] !== "reidentify") return undefined;
  try {
    const { values } = parseArgs({ args: args.slice(2), options: { tenant: { type: "string" } } });
    const { tenant } = values;
    return tenant === undefined ? undefined : (db) => reidentify(db, tenant);
  } catch {
    return undefined; // an option that it does not have
  }
}

async function reidentify(db: Db, name: string): Promise<string> {
  const tenant = await tenantNamed(db, name);
  const count = await reidentifyEntities(db, tenant.id);
  await transaction(db, (tx) =>
    auditedAction(tx, tenant.id, commandLine(), "ReidentifyEntities", resourceText("tenant", tenant.name)),
  );
  return `${count} entities are deleted; their services make their own with the next data they send\n`;
}
