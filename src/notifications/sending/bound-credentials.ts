import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { and, eq, sql } from "drizzle-orm";
import { type DestinationType, DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { bindHosts, type HostsInUse } from "../../credentials/bound-hosts.ts";
import { readUsers } from "../../credentials/used-by.ts";
import { textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { orm } from "../../db/orm.ts";
import { credentialIdOf, hostsOf, type ProductAddresses } from "../kinds/stored-credential.ts";
import { destinations } from "../rules/tables.ts";

/** Reads the hosts of all stored destinations that use a credential. */
export const hostsInUse =
  (products: ProductAddresses): HostsInUse =>
  async (tx, tenantId, credentialId) => {
    const names = await readUsers(tx, tenantId, credentialId, "destination");
    if (names.length === 0) return [];
    const rows = await orm(tx)
      .select({ type: destinations.type })
      .from(destinations)
      .where(and(eq(destinations.tenantId, tenantId), sql`${destinations.name} = any(${textArray(names)}::text[])`));
    const hosts = rows.flatMap(({ type }) => hostsOf(fromJson(DestinationTypeSchema, type as JsonValue), products));
    return [...new Set(hosts)].sort();
  };

/**
 * Binds the credential that a destination names, if it names one without allowedHosts: to the destinations that use it, else to this one.
 * In the caller's transaction, and before the destination is changed.
 */
export async function bindCredential(
  tx: Db,
  tenantId: string,
  type: DestinationType,
  products: ProductAddresses,
): Promise<void> {
  const id = credentialIdOf(type);
  if (id === "") return;
  const stored = hostsInUse(products);
  await bindHosts(tx, tenantId, id, async (...which) => {
    const hosts = await stored(...which);
    return hosts.length > 0 ? hosts : hostsOf(type, products);
  });
}
