import { parseArgs } from "node:util";
import { SettingError } from "../config/parsers.ts";
import type { Config } from "../config/settings.ts";
import { distribute } from "../db/distribute.ts";
import { checkMigrated } from "../db/migrate.ts";
import { StartError } from "../db/start-error.ts";

const shardsUsual = 32;
const shardsMost = 1024;

/** How the command of this file is called. */
export const distributeUsage = [
  [
    "distribute [--shards <number>]",
    "spread the tables over the workers of a Citus cluster, by tenant; 32 parts of each",
  ],
] as const;

/**
 * What a command line about distribution asks for: the work on the database of a URL, which returns what to print. Undefined when it is none.
 * @throws SettingError for a number of shards that cannot be
 */
export function distributeCommand(
  args: readonly string[],
  config: Pick<Config, "databaseUrl">,
): ((url: string) => Promise<string>) | undefined {
  const shards = shardsOf(args);
  if (shards === undefined) return undefined;
  if (!/^[1-9]\d{0,3}$/.test(shards) || Number(shards) > shardsMost) {
    throw new SettingError(
      `distribute: --shards must be a whole number from 1 to ${shardsMost}, not ${JSON.stringify(shards)}`,
    );
  }
  if (config.databaseUrl === undefined) {
    throw new StartError(
      "distribute: DATABASE_URL must name the coordinator of a Citus cluster; the embedded database is none",
    );
  }
  return async (url) => {
    await checkMigrated(url);
    const { tables, notes } = await distribute(url, Number(shards));
    const done =
      tables.length === 0
        ? "all tables are distributed"
        : `distributed ${tables.length} tables: ${tables.join(", ")}\nnow start the servers, those that are running anew`;
    return `${[done, ...notes.map((note) => `note: ${note}`)].join("\n")}\n`;
  };
}

function shardsOf(args: readonly string[]): string | undefined {
  if (args[0] !== "distribute") return undefined;
  try {
    const { values } = parseArgs({ args: args.slice(1), options: { shards: { type: "string" } } });
    return values.shards ?? String(shardsUsual);
  } catch {
    return undefined;
  }
}
