import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { and, asc, eq, gt } from "drizzle-orm";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Keyring } from "../../credentials/keyring.ts";
import { sealSecrets } from "../../credentials/secrets.ts";
import type { Db } from "../../db/connect.ts";
import { orm } from "../../db/orm.ts";
import { transaction } from "../../db/transaction.ts";
import { partSecrets, secretOwner } from "../kinds/secrets.ts";
import { destinations } from "../rules/tables.ts";

/** What seals the addresses of webhooks. */
export interface AddressSealing {
  readonly keyring: Keyring;
  /** Whether no server is left that would not know sealed addresses. */
  begun(): boolean;
}

/** Tells whether addresses that are secrets are sealed: all servers know it, and there is a key. */
export const sealsAddresses = ({ keyring, begun }: AddressSealing): boolean => begun() && keyring.all().length > 0;

const portion = 100;

/**
 * Seals the secret addresses of some of a tenant's webhooks that were stored as they are: by a version before, or while one was there.
 * Returns the name after which there may be more; undefined: there are none. May be repeated.
 */
export async function sealAddresses(
  db: Db,
  tenantId: string,
  after: string,
  keyring: Keyring,
): Promise<string | undefined> {
  const { name, kind, type } = destinations;
  // Of all kinds: no index finds the next webhooks among many others.
  const rows = await orm(db)
    .select({ name, kind, type })
    .from(destinations)
    .where(and(eq(destinations.tenantId, tenantId), gt(name, after)))
    .orderBy(asc(name))
    .limit(portion);
  const webhooks = rows.filter((row) => row.kind === "webhook");
  const plain = webhooks.filter((row) => Object.keys(parted(row.type).fresh).length > 0);
  for (const row of plain) await transaction(db, (tx) => sealAddress(tx, tenantId, row.name, keyring));
  return rows.length < portion ? undefined : rows.at(-1)?.name;
}

const parted = (type: unknown) => partSecrets(fromJson(DestinationTypeSchema, type as JsonValue));

async function sealAddress(tx: Db, tenantId: string, name: string, keyring: Keyring): Promise<void> {
  const own = and(eq(destinations.tenantId, tenantId), eq(destinations.name, name));
  const { type, secrets } = destinations;
  const [row] = await orm(tx).select({ type, secrets }).from(destinations).where(own).for("no key update");
  if (row === undefined) return;
  const { masked, fresh } = parted(row.type);
  const sealed = await sealSecrets(tx, tenantId, secretOwner(name), fresh, keyring);
  await orm(tx)
    .update(destinations)
    .set({ type: toJson(DestinationTypeSchema, masked), secrets: { ...row.secrets, ...sealed } })
    .where(own);
}
