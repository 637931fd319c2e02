import type { Config } from "../config/settings.ts";
import { keyring } from "../credentials/keyring.ts";
import { rotateMasterKey } from "../credentials/rotate.ts";
import type { Db } from "../db/connect.ts";
import { commandLine } from "./tenants.ts";

/** How the commands of this file are called. */
export const credentialUsage = [
  ["credentials rotate", "protect all stored secrets by the newest master key; calls go on meanwhile"],
] as const;

/** What a command line about credentials asks for: the work on a migrated database, which answers what to print. Undefined when it is none. */
export function credentialCommand(args: readonly string[], config: Config): ((db: Db) => Promise<string>) | undefined {
  if (args.length !== 2 || args[0] !== "credentials" || args[1] !== "rotate") return undefined;
  return (db) => rotate(db, config);
}

async function rotate(db: Db, config: Config): Promise<string> {
  const ring = keyring(config);
  const { to, tenants, retired } = await rotateMasterKey(db, ring, commandLine());
  const lines = [`all secrets are protected by the master key ${to}; data keys wrapped anew: ${tenants}`];
  if (retired.length > 0) {
    const gone = ring.ownFile === undefined ? "may be removed everywhere" : `removed from ${ring.ownFile}`;
    lines.push(`no longer needed: ${retired.join(", ")}, ${gone}`);
  }
  return `${lines.join("\n")}\n`;
}
