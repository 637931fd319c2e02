import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { and, eq, inArray } from "drizzle-orm";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { credentialTroubles, keyTrouble, kindsOfKeys, openable } from "../../credentials/key-troubles.ts";
import type { Keyring } from "../../credentials/keyring.ts";
import { sealedOpener } from "../../credentials/secrets.ts";
import type { Db } from "../../db/connect.ts";
import { orm } from "../../db/orm.ts";
import { secretOwner } from "../kinds/secrets.ts";
import { credentialIdOf } from "../kinds/stored-credential.ts";
import { destinations } from "../rules/tables.ts";

/** Where the key of a kind is, when it is in the destination. */
const members: Readonly<Record<string, string>> = { incidentPaging: "integrationKey", teamChat: "token" };

/** Says which of these destinations send a key or token of the wrong form, by their names: their own, or that of their credential. */
export async function keyTroubles(
  db: Db,
  tenantId: string,
  names: readonly string[],
  keyring: Keyring,
): Promise<ReadonlyMap<string, string>> {
  const { name, kind, type, secrets } = destinations;
  const rows = await orm(db)
    .select({ name, kind, type, secrets })
    .from(destinations)
    .where(and(eq(destinations.tenantId, tenantId), inArray(name, [...names]), inArray(kind, kindsOfKeys)));
  if (rows.length === 0) return new Map();
  const idOf = (row: { type: unknown }) => credentialIdOf(fromJson(DestinationTypeSchema, row.type as JsonValue));
  const ids = rows.map(idOf).filter((id) => id !== "");
  const ofCredentials = await credentialTroubles(db, tenantId, ids, keyring);
  const open = await sealedOpener(db, tenantId, keyring);
  return new Map(
    rows.map((row) => {
      const id = idOf(row);
      const path = `${row.kind}.${id === "" ? members[row.kind] : "credentialId"}`;
      const own = () => openable(() => open(secretOwner(row.name), row.secrets))[path];
      const rule = id === "" ? keyTrouble(row.kind, own()) : ofCredentials.get(id);
      return [row.name, rule ? `${path}: ${rule}` : ""];
    }),
  );
}
