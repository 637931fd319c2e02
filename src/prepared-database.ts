import type { Logger } from "pino";
import type { Config } from "./config/settings.ts";
import { keyring } from "./credentials/keyring.ts";
import { checkMasterKeys } from "./credentials/master-keys.ts";
import { connectOnce } from "./db/connect.ts";
import { isDistributed } from "./db/distribution.ts";
import { migrate } from "./db/migrate.ts";
import { sessionName } from "./db/session-name.ts";
import { startEmbedded } from "./embedded/embedded.ts";
import { type FirstKey, firstKey, hasTenant } from "./tenants/first-key.ts";

/** A database that servers may use. */
export interface PreparedDatabase {
  /** With user and password: not for logs. */
  readonly url: string;
  /** The first manager key; undefined when the database is not the embedded one, or its file was put away. */
  readonly firstKey: FirstKey | undefined;
  /** Whether it has no tenant yet, so that nothing can be called: one of the operator's own. */
  readonly tenantless: boolean;
  /** Whether the tables of tenants lie distributed over nodes. */
  readonly distributed: boolean;
}

/** Connections of a server that do not count in its pool: one probes, one listens. */
export const extraConnections = 2;

/**
 * The embedded database, started for `processes` servers, or the one that DATABASE_URL names, with its schema up to date and its
 * master keys checked. `starting` gets what stops it. @throws StartError in one clear line for what the operator can mend
 */
export async function preparedDatabase(
  config: Config,
  log: Logger,
  starting: AsyncDisposableStack,
  processes = 1,
): Promise<PreparedDatabase> {
  let url = config.databaseUrl;
  if (url === undefined) {
    const connectionsMax = processes * (config.poolConnectionsMax + extraConnections) + 48;
    const embedded = await startEmbedded({ dataDir: config.dataDir, log, connectionsMax });
    starting.defer(() => embedded.stop());
    url = embedded.url;
  }
  await migrate(url, { log });
  const { sql, close } = connectOnce(url, sessionName("start"));
  try {
    const first = config.databaseUrl === undefined ? await firstKey(sql, config.dataDir) : undefined;
    if (!(await checkMasterKeys(sql, keyring(config)))) {
      log.warn("no master key: credentials are stored without secrets only; set BELFRY_MASTER_KEYS");
    }
    const tenantless = first === undefined && !(await hasTenant(sql));
    return { url, firstKey: first, tenantless, distributed: await isDistributed(sql) };
  } finally {
    await close();
  }
}
