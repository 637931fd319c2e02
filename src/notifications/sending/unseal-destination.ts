import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { and, eq } from "drizzle-orm";
import { type DestinationType, DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Keyring } from "../../credentials/keyring.ts";
import { openSealed, openSecrets } from "../../credentials/secrets.ts";
import { usableCredential } from "../../credentials/used-by.ts";
import type { Db } from "../../db/connect.ts";
import { orm } from "../../db/orm.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { addressPath } from "../kinds/hidden-address.ts";
import { checkSecretAddresses } from "../kinds/secret-addresses.ts";
import { keptOf, type Parted, partSecrets, secretOwner, withSecrets, withStoredAddress } from "../kinds/secrets.ts";
import { checkCredential, credentialIdOf, type ProductAddresses, withCredential } from "../kinds/stored-credential.ts";
import { destinations } from "../rules/tables.ts";
import { bindCredential } from "./bound-credentials.ts";

/** A destination with its secrets readable. */
export interface OpenDestination {
  readonly type: DestinationType;
  /** Where those of its stored credential may be sent; empty: it names none. */
  readonly allowedHosts: readonly string[];
  /** All that the stored credential keeps secret, user names as well. */
  readonly credentialSecrets: readonly string[];
}

/**
 * A destination with its secrets readable: in place of `********` what is stored under its name, and what the stored
 * credential holds that it names. `path` is the type's place in the request.
 * @throws code 3 where nothing is stored, for secrets that would be sent elsewhere than the stored ones, and for a credential
 * of another type; code 9 as openSealed
 */
export async function unsealDestination(
  db: Db,
  tenantId: string,
  name: string,
  type: DestinationType,
  keyring: Keyring,
  products: ProductAddresses,
  path: string,
): Promise<OpenDestination> {
  const opened = await openKept(db, tenantId, name, type, keyring, path);
  const id = credentialIdOf(type);
  const credentialPath = `${path}.${type.type.case}.credentialId`;
  const bind = () => bindCredential(db, tenantId, type, products);
  const credential = id === "" ? undefined : await usableCredential(db, tenantId, id, credentialPath, bind);
  checkCredential(type, credential, path);
  if (credential === undefined) return { type: opened, allowedHosts: [], credentialSecrets: [] };
  const { secrets } = await openSecrets(db, tenantId, id, keyring);
  const { allowedHosts } = credential;
  return { type: withCredential(opened, secrets), allowedHosts, credentialSecrets: Object.values(secrets) };
}

async function openKept(
  db: Db,
  tenantId: string,
  name: string,
  type: DestinationType,
  keyring: Keyring,
  path: string,
): Promise<DestinationType> {
  const own = normalizedName(name);
  // What is kept and where it belongs are of one statement.
  const stored = partSecrets(type).kept.length === 0 ? undefined : await storedDestination(db, tenantId, own);
  const before = stored && (await withOpenAddress(db, tenantId, own, stored, keyring));
  const addressed = withStoredAddress(type, before, path);
  const parted: Parted = partSecrets(addressed);
  const kept = keptOf(stored?.secrets ?? {}, parted.kept, path);
  checkSecretAddresses(parted, before, path);
  if (parted.kept.length === 0) return addressed;
  return withSecrets(addressed, await openSealed(db, tenantId, secretOwner(own), kept, keyring));
}

/** The type of a stored destination, its other secrets masked, with its address readable. @throws code 9 as openSealed */
export async function withOpenAddress(
  db: Db,
  tenantId: string,
  name: string,
  { type, secrets: { [addressPath]: sealed } }: { type: DestinationType; secrets: Readonly<Record<string, string>> },
  keyring: Keyring,
): Promise<DestinationType> {
  if (sealed === undefined) return type;
  return withSecrets(type, await openSealed(db, tenantId, secretOwner(name), { [addressPath]: sealed }, keyring));
}

async function storedDestination(db: Db, tenantId: string, name: string) {
  const [row] = await orm(db)
    .select({ secrets: destinations.secrets, type: destinations.type })
    .from(destinations)
    .where(and(eq(destinations.tenantId, tenantId), eq(destinations.name, name)));
  return row && { secrets: row.secrets, type: fromJson(DestinationTypeSchema, row.type as JsonValue) };
}
