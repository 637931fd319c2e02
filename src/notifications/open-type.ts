import { and, eq } from "drizzle-orm";
import type { DestinationType } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Keyring } from "../credentials/keyring.ts";
import { openSealed, openSecrets } from "../credentials/secrets.ts";
import { credentialType } from "../credentials/used-by.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { foundBy } from "../rpc/names.ts";
import { keptOf, ownerOf, partSecrets, withSecrets } from "./secrets.ts";
import { checkCredential, credentialIdOf, withCredential } from "./stored-credential.ts";
import { destinations } from "./tables.ts";

/**
 * The type of a destination with its secrets readable: in place of `********` what is stored under the destination's name,
 * and what the stored credential holds that it names. `path` is the type's place in the request.
 * @throws code 3 where nothing is stored, and for a credential of another type; code 9 as openSealed
 */
export async function openType(
  db: Db,
  tenantId: string,
  name: string,
  type: DestinationType,
  keyring: Keyring,
  path: string,
): Promise<DestinationType> {
  const { kept } = partSecrets(type);
  const opened = kept.length === 0 ? type : withSecrets(type, await openKept(db, tenantId, name, kept, keyring, path));
  const id = credentialIdOf(type);
  const kind = id === "" ? undefined : await credentialType(db, tenantId, id, `${path}.${type.type.case}.credentialId`);
  checkCredential(type, kind, path);
  if (id === "") return opened;
  return withCredential(opened, (await openSecrets(db, tenantId, id, keyring)).secrets);
}

async function openKept(
  db: Db,
  tenantId: string,
  name: string,
  paths: readonly string[],
  keyring: Keyring,
  path: string,
): Promise<Record<string, string>> {
  const [stored] = await orm(db)
    .select({ secrets: destinations.secrets })
    .from(destinations)
    .where(and(eq(destinations.tenantId, tenantId), eq(destinations.name, foundBy(name))));
  return await openSealed(db, tenantId, ownerOf(foundBy(name)), keptOf(stored?.secrets ?? {}, paths, path), keyring);
}
