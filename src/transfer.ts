import type { Config } from "./config/settings.ts";
import { keyring } from "./credentials/keyring.ts";
import { checkStoredMasterKeys } from "./credentials/master-keys.ts";
import type { Db } from "./db/connect.ts";
import { type Copied, exportTo } from "./db/copy/export.ts";
import { importFrom } from "./db/copy/import.ts";
import { version } from "./version.ts";

/** How the commands of this file are called. */
export const transferUsage = [
  ["export <file>", "write all data into a new file, as of one moment, while servers go on"],
  ["import <file>", "fill an empty database from such a file"],
] as const;

function summary({ rows, takenAt }: Copied): string {
  const tables = Object.values(rows);
  const count = tables.reduce((sum, each) => sum + each, 0);
  return `${count} rows of ${tables.length} tables, as of ${takenAt}`;
}

/**
 * What a command line about all data asks for: the work on the database of a URL, which answers what to print. Undefined when it is none.
 */
export function transferCommand(
  args: readonly string[],
  config: Config,
): ((url: string) => Promise<string>) | undefined {
  const [command, file, ...rest] = args;
  if (file === undefined || rest.length > 0) return undefined;
  if (command === "export") return async (url) => `${file} holds ${summary(await exportTo(url, file, version))}\n`;
  if (command !== "import") return undefined;
  // Secrets that this server could not read are refused before they are stored.
  async function filled(tx: Db, table: string) {
    if (table === "master_keys") await checkStoredMasterKeys(tx, keyring(config));
  }
  return async (url) => `the database holds ${summary(await importFrom(url, file, version, filled))}\n`;
}
