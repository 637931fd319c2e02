import { and, eq } from "drizzle-orm";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { allowedHostsColumn, credentials } from "./tables.ts";

/** Returns the hosts that what uses a credential sends its secrets to; empty: nothing uses it. */
export type HostsInUse = (tx: Db, tenantId: string, credentialId: string) => Promise<readonly string[]>;

/**
 * Binds a credential without allowedHosts to where it is used, once for all, in the caller's transaction. May be repeated, also for a
 * credential that does not exist.
 */
export async function bindHosts(tx: Db, tenantId: string, credentialId: string, hostsInUse: HostsInUse): Promise<void> {
  const own = and(eq(credentials.tenantId, tenantId), eq(credentials.id, credentialId));
  const [row] = await orm(tx)
    .select({ allowedHosts: allowedHostsColumn, boundHosts: credentials.boundHosts })
    .from(credentials)
    .where(own)
    .for("no key update");
  if (row === undefined || row.allowedHosts.length > 0 || row.boundHosts !== null) return;
  const hosts = await hostsInUse(tx, tenantId, credentialId);
  if (hosts.length > 0)
    await orm(tx)
      .update(credentials)
      .set({ boundHosts: [...hosts] })
      .where(own);
}
